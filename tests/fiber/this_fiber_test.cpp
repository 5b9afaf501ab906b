// Operations of the calling fiber: yield, sleep, and its identity.
#include "pirn/fiber/this_fiber.hpp"

#include <set>
#include <sstream>
#include <unordered_map>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;

TEST(this_fiber, yield_takes_turns) {
  rig r(1);
  std::string turns;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (const char who : {'a', 'b', 'c'}) {
      all.push_back(pirn::spawn([&turns, who] {
        for (int i = 0; i < 4; ++i) {
          turns += who;
          pirn::this_fiber::yield();
        }
      }));
    }
    join_all(all);
  });
  EXPECT_EQ(turns, "abcabcabcabc");
}

TEST(this_fiber, yield_alone_returns) {
  rig r(1);
  int turns = 0;
  r.rt.run([&] {
    for (; turns < 10'000; ++turns) {
      pirn::this_fiber::yield();
    }
  });
  EXPECT_EQ(turns, 10'000);
}

TEST(this_fiber, keeps_values_across_a_switch) {
  rig r(1);
  r.rt.run([] {
    std::vector<pirn::fiber> all;
    for (int k = 0; k < 10; ++k) {
      all.push_back(pirn::spawn([k] {
        double d = k;
        long double ld = k;
        std::uint64_t words[6] = {};
        for (unsigned i = 0; i < 100; ++i) {
          d += 0.5;
          ld *= 1.0L;
          for (unsigned j = 0; j < 6; ++j) {
            words[j] += j * i + static_cast<unsigned>(k);
          }
          pirn::this_fiber::yield();
        }
        EXPECT_EQ(d, k + 50.0);
        EXPECT_EQ(ld, static_cast<long double>(k));
        for (unsigned j = 0; j < 6; ++j) {
          EXPECT_EQ(words[j], j * 4950u + 100u * static_cast<unsigned>(k));
        }
      }));
    }
    join_all(all);
  });
}

TEST(this_fiber, sleeps_end_in_the_order_of_their_deadlines) {
  rig r(1);
  std::string order;
  r.rt.run([&] {
    const auto base = clock::now() + 5ms;
    std::vector<pirn::fiber> all;
    for (const char who : {'d', 'a', 'c', 'b', 'e'}) {
      all.push_back(pirn::spawn([&order, who, base] {
        EXPECT_TRUE(pirn::this_fiber::sleep_until(base + (who - 'a') * 100us).has_value());
        EXPECT_GE(clock::now(), base + (who - 'a') * 100us);
        order += who;
      }));
    }
    join_all(all);
  });
  EXPECT_EQ(order, "abcde");
}

TEST(this_fiber, sleep_lasts_as_long_as_asked) {
  rig r(1);
  const auto check = [] {
    const auto begin = clock::now();
    EXPECT_TRUE(pirn::this_fiber::sleep_for(3ms).has_value());
    EXPECT_GE(clock::now() - begin, 3ms);
    EXPECT_TRUE(pirn::this_fiber::sleep_until(begin).has_value());  // past
    EXPECT_TRUE(pirn::this_fiber::sleep_for(-1s).has_value());
  };
  check();
  r.rt.run(check);
}

TEST(this_fiber, sleep_for_the_longest_time_does_not_overflow) {
  rig r(1);
  pirn::fiber f = r.rt.spawn([] {
    EXPECT_EQ(pirn::this_fiber::sleep_for(pirn::platform::duration::max()).error(), pirn::wait_error::stopped);
  });
  EXPECT_FALSE(f.join(clock::now() + 5ms));
  f.request_stop();
  f.join();
}

TEST(fiber_id, ids_tell_fibers_and_threads_apart) {
  rig r;
  const auto text_of = [](pirn::fiber::id id) {
    std::ostringstream out;
    out << id;
    return out.str();
  };
  pirn::fiber::id inside;
  EXPECT_EQ(inside, pirn::fiber().get_id());
  EXPECT_EQ(text_of(inside), "no fiber");
  pirn::fiber f = r.rt.spawn([&] { inside = pirn::this_fiber::get_id(); });
  const pirn::fiber::id id = f.get_id();
  f.join();
  EXPECT_EQ(inside, id);
  EXPECT_EQ(f.get_id(), pirn::fiber::id());
  EXPECT_EQ(text_of(id), std::to_string(id.number()));
  EXPECT_EQ(id, pirn::fiber::id(id.number()));

  const pirn::fiber::id here = pirn::this_fiber::get_id();
  EXPECT_EQ(here, pirn::this_fiber::get_id());
  EXPECT_EQ(here.number(), 0U);
  EXPECT_EQ(text_of(here).rfind("thread ", 0), 0U);
  pirn::fiber::id other;
  std::thread([&] { other = pirn::this_fiber::get_id(); }).join();
  const std::set<pirn::fiber::id> ordered{here, other, id, pirn::fiber::id()};
  EXPECT_EQ(ordered.size(), 4U);
  EXPECT_TRUE(ordered.contains(here) && ordered.contains(id));
  const std::unordered_map<pirn::fiber::id, int> hashed{{here, 1}, {other, 2}, {id, 3}};
  EXPECT_EQ(hashed.at(id), 3);
  EXPECT_TRUE(here != id && !(here < here) && (here < id || id < here));
}

TEST(this_fiber, on_a_plain_thread) {
  EXPECT_EQ(pirn::this_fiber::number(), 0u);
  EXPECT_EQ(pirn::this_fiber::name(), "");
  EXPECT_FALSE(pirn::this_fiber::stop_requested());
  pirn::this_fiber::yield();
}

}  // namespace
