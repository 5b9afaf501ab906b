// Events with manual and with automatic reset.
#include "pirn/sync/event.hpp"

#include <optional>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::event_reset;
using pirn::wait_error;

TEST(event, manual_stays_set) {
  pirn::event e;
  EXPECT_FALSE(e.is_set());
  EXPECT_FALSE(e.try_wait());
  EXPECT_EQ(e.wait(clock::time_point{}).error(), wait_error::timed_out);
  e.reset();
  e.set();
  e.set();
  EXPECT_TRUE(e.is_set());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(e.try_wait());
    EXPECT_TRUE(e.wait().has_value());
  }
  e.reset();
  EXPECT_FALSE(e.try_wait());
}

TEST(event, automatic_lets_one_through) {
  pirn::event e(event_reset::automatic);
  EXPECT_FALSE(e.try_wait());
  e.set();
  e.set();  // counts once
  EXPECT_TRUE(e.is_set());
  EXPECT_TRUE(e.wait().has_value());
  EXPECT_FALSE(e.is_set());
  EXPECT_FALSE(e.try_wait());
  e.set();
  EXPECT_TRUE(e.try_wait());
  e.set();
  e.reset();
  EXPECT_EQ(e.wait(clock::time_point{}).error(), wait_error::timed_out);
}

TEST(event, manual_wakes_all_that_wait_even_if_reset_at_once) {
  rig r(3);
  for (int round = 0; round < scaled(300); ++round) {
    pirn::event e;
    std::atomic<int> before = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 6; ++i) {
      all.push_back(r.rt.spawn([&] {
        ++before;
        EXPECT_TRUE(e.wait().has_value());
      }));
    }
    std::jthread thread([&] { EXPECT_TRUE(e.wait().has_value()); });
    if (round % 2 == 0) {
      while (before < 6) {
        std::this_thread::yield();
      }
    }
    e.set();
    join_all(all);
  }
  rig one(1);
  pirn::event e;
  one.rt.run([&] {
    pirn::fiber f = pirn::spawn([&] { EXPECT_TRUE(e.wait().has_value()); });
    pirn::this_fiber::yield();
    e.set();
    e.reset();
    f.join();
  });
  EXPECT_FALSE(e.is_set());
}

TEST(event, automatic_hands_over_in_the_order_of_waiting) {
  rig r(1);
  pirn::event e(event_reset::automatic);
  std::string order;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (const char who : {'a', 'b', 'c'}) {
      all.push_back(pirn::spawn([&, who] {
        EXPECT_TRUE(e.wait().has_value());
        order += who;
      }));
    }
    pirn::this_fiber::yield();
    for (int i = 0; i < 3; ++i) {
      e.set();
      EXPECT_FALSE(e.is_set());  // it belongs to the woken fiber
      pirn::this_fiber::yield();
    }
    join_all(all);
  });
  EXPECT_EQ(order, "abc");
}

TEST(event, a_set_that_counts_once_still_shows_what_was_done_before) {
  for (int i = 0; i < scaled(1000); ++i) {
    pirn::event work(event_reset::automatic);
    int first = 0;  // not atomic: the event orders them
    int second = 0;
    std::atomic<bool> both = false;
    std::jthread producer([&] {
      first = 1;
      work.set();
      second = 1;
      work.set();                                   // it is set already
      both.store(true, std::memory_order_relaxed);  // which orders nothing
    });
    while (!both.load(std::memory_order_relaxed)) {
      pirn::platform::relax();
    }
    EXPECT_TRUE(work.try_wait());
    EXPECT_EQ(first + second, 2);
  }
}

TEST(event, passes_turns_between_a_thread_and_a_fiber) {
  rig r(1);
  pirn::event to_fiber(event_reset::automatic);
  pirn::event to_thread(event_reset::automatic);
  const int rounds = scaled(5000);
  int value = 0;  // not atomic: the events order it
  pirn::fiber f = r.rt.spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_TRUE(to_fiber.wait().has_value());
      EXPECT_EQ(value++, 2 * i + 1);
      to_thread.set();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ++value;
    to_fiber.set();
    EXPECT_TRUE(to_thread.wait().has_value());
    EXPECT_EQ(value, 2 * i + 2);
  }
  f.join();
}

class both_resets : public testing::TestWithParam<event_reset> {};

TEST_P(both_resets, gives_up) {
  rig r(1);
  pirn::event e(GetParam());
  EXPECT_EQ(e.wait(clock::now() + 1ms).error(), wait_error::timed_out);
  std::atomic<bool> timed_out = false;
  pirn::fiber f = r.rt.spawn([&] {
    EXPECT_EQ(e.wait(clock::now() + 1ms).error(), wait_error::timed_out);
    timed_out = true;
    EXPECT_EQ(e.wait().error(), wait_error::stopped);
    e.set();  // no fiber waits any more, so it stays
    EXPECT_TRUE(e.wait().has_value());
  });
  EXPECT_TRUE(eventually([&] { return timed_out.load(); }));
  f.request_stop();
  f.join();
}

TEST_P(both_resets, may_be_destroyed_as_soon_as_the_wait_returns) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    std::optional<pirn::event> e(std::in_place, GetParam());
    pirn::event& here = *e;
    if (i % 2 == 0) {  // after an earlier wait
      EXPECT_FALSE(here.wait(clock::time_point{}).has_value());
    }
    pirn::fiber f = r.rt.spawn([&] { here.set(); });
    if (i % 3 == 0) {
      while (!here.try_wait()) {
        pirn::platform::relax();
      }
    } else {
      EXPECT_TRUE(here.wait().has_value());
    }
    e.reset();
    f.join();
  }
}

INSTANTIATE_TEST_SUITE_P(resets, both_resets, testing::Values(event_reset::manual, event_reset::automatic),
                         [](const auto& how) { return how.param == event_reset::manual ? "manual" : "automatic"; });

}  // namespace
