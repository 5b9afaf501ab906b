// Fibers of high priority run first, but do not keep others from running.
#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::fiber_priority;
namespace this_fiber = pirn::this_fiber;

const pirn::spawn_options high{.priority = fiber_priority::high};

unsigned here() { return pirn::detail::current_worker()->index; }

TEST(priority, ready_fibers_of_high_priority_run_before_all_others) {
  rig r(1);
  std::string order;
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    event woken;
    const auto note = [&](char who) { return [&order, who] { order += who; }; };
    all.push_back(pirn::spawn([&] {
      static_cast<void>(woken.wait());
      order += 'w';
    }));
    this_fiber::yield();
    all.push_back(pirn::spawn(note('1')));
    all.push_back(pirn::spawn(note('A'), high));
    all.push_back(pirn::spawn(note('2')));
    all.push_back(pirn::spawn(note('B'), high));
    woken.signal();
    this_fiber::yield();
    join_all(all);
  });
  EXPECT_EQ(order, "ABw12");
}

// Everything that makes a fiber ready respects its priority.
TEST(priority, holds_when_the_end_of_a_fiber_wakes) {
  rig r(1);
  std::string order;
  r.rt.run([&] {
    pirn::spawn(
        [&] {
          pirn::fiber child = pirn::spawn([&] { order += 'c'; });
          pirn::spawn([&] { order += '1'; }).detach();
          pirn::spawn([&] { order += '2'; }).detach();
          child.join();
          order += 'J';
        },
        high)
        .join();
  });
  EXPECT_EQ(order.substr(0, 2), "cJ");
}

TEST(priority, holds_when_timers_and_other_threads_wake) {
  rig r(1);
  std::string order;
  r.rt.run([&] {
    event word;
    std::vector<pirn::fiber> all;
    const auto due = clock::now() + 5ms;
    const auto sleeper = [&](char who, pirn::platform::time_point when) {
      return [&order, who, when] {
        EXPECT_TRUE(this_fiber::sleep_until(when));
        order += who;
      };
    };
    all.push_back(pirn::spawn(sleeper('1', due)));
    all.push_back(pirn::spawn(sleeper('T', due + 1us), high));
    all.push_back(pirn::spawn(
        [&] {
          static_cast<void>(word.wait());
          order += 'W';
        },
        high));
    this_fiber::yield();
    this_fiber::yield();
    std::atomic<bool> handed_over = false;
    std::jthread outside([&] {
      r.rt.spawn([&] { order += '2'; }).detach();
      r.rt.spawn([&] { order += 'S'; }, high).detach();
      word.signal();
      handed_over = true;
    });
    compute_until([&] { return handed_over && clock::now() > due + 1us; });
    join_all(all);
  });
  EXPECT_EQ(order, "SWT21");
}

class high_priority_turns : public testing::TestWithParam<unsigned> {};

TEST_P(high_priority_turns, limits_the_wait_of_the_others) {
  const unsigned bound = GetParam();
  pirn::runtime_options options;
  if (bound != 0) {
    options.high_priority_turns = bound;
  }
  rig r(1, options);
  const unsigned expected = bound != 0 ? bound : 32;  // as documented
  std::uint64_t longest = 0;
  r.rt.run([&] {
    bool done = false;
    std::uint64_t turns = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(pirn::spawn(
          [&] {
            while (!done) {
              ++turns;
              this_fiber::yield();
            }
          },
          high));
    }
    this_fiber::yield();
    for (int i = 0; i < scaled(2000); ++i) {
      const std::uint64_t before = turns;
      this_fiber::yield();
      longest = std::max(longest, turns - before);
      EXPECT_GE(turns - before, expected / 2);  // the scheduler's ticks took the rest
    }
    done = true;
    join_all(all);
  });
  EXPECT_EQ(longest, expected);
}

INSTANTIATE_TEST_SUITE_P(bounds, high_priority_turns, testing::Values(1u, 5u, 0u));

TEST(priority, nobody_starves_beside_fibers_that_wake_each_other) {
  rig r(1, {.high_priority_turns = 8});
  r.rt.run([&] {
    bool done = false;
    event turn[2];
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 2; ++i) {
      all.push_back(pirn::spawn(
          [&, i] {
            while (!done) {
              static_cast<void>(turn[i].wait());
              turn[1 - i].signal();
            }
            turn[1 - i].signal();
          },
          high));
    }
    turn[0].signal();
    // Timers still fire, and fibers from other threads still run.
    EXPECT_TRUE(this_fiber::sleep_for(1ms));
    std::atomic<bool> arrived = false;
    std::jthread outside([&] { r.rt.spawn([&] { arrived = true; }).join(); });
    EXPECT_TRUE(eventually([&] { return arrived.load(); }));
    done = true;
    join_all(all);
  });
}

TEST(priority, changes_with_the_next_switch) {
  rig r(1);
  std::string order;
  r.rt.run([&] {
    const auto thrice = [&](char who) {
      return [&order, who] {
        for (int i = 0; i < 3; ++i) {
          order += who;
          this_fiber::yield();
        }
      };
    };
    this_fiber::set_priority(fiber_priority::high);
    std::vector<pirn::fiber> all;
    all.push_back(pirn::spawn(thrice('a')));
    all.push_back(pirn::spawn(thrice('b')));
    for (int i = 0; i < 3; ++i) {
      order += 'H';
      this_fiber::yield();
    }
    this_fiber::set_priority(fiber_priority::normal);
    for (int i = 0; i < 3; ++i) {
      order += 'n';
      this_fiber::yield();
    }
    join_all(all);
  });
  EXPECT_EQ(order, "HHHnabnabnab");
}

TEST(priority, what_is_of_high_priority_is_not_stolen) {
  rig r(2);
  std::atomic<int> elsewhere = 0;
  r.rt.spawn(
          [&] {
            std::vector<pirn::fiber> all;
            std::atomic<bool> stolen = false;
            // The last fiber makes the other worker search: it must find that fiber and nothing else.
            for (int i = 0; i < 20; ++i) {
              all.push_back(
                  pirn::spawn([&] { elsewhere += here() != 0 ? 1 : 0; }, {.worker = pirn::spawn_options::any_worker,
                                                                          .migratable = i % 2 == 0,
                                                                          .priority = fiber_priority::high}));
            }
            all.push_back(pirn::spawn([&] { stolen = here() == 1; }, {.worker = pirn::spawn_options::any_worker}));
            const auto limit = clock::now() + 10s;
            compute_until([&] { return stolen.load() || clock::now() > limit; });
            EXPECT_TRUE(stolen);
            join_all(all);
          },
          {.worker = 0})
      .join();
  EXPECT_EQ(elsewhere, 0);
}

TEST(priority, of_a_plain_thread_is_none) {
  this_fiber::set_priority(fiber_priority::high);
  rig r(1);
  int ran = 0;
  r.rt.spawn([&] { ++ran; }, high).join();
  EXPECT_EQ(ran, 1);
}

}  // namespace
