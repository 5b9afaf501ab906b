// Fairness: ready fibers do not starve while others wake each other. Timers, inbox and engine do not starve while
// fibers only switch among themselves.
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fiber/support.hpp"
#include "pirn/fiber/expert/engine.hpp"

namespace {

using namespace pirn_test;

/// Two fibers of one worker that wake each other until `done`. Each counts its turns.
class ping_pong {
 public:
  void start(std::vector<pirn::fiber>& all) {
    for (int i = 0; i < 2; ++i) {
      all.push_back(pirn::spawn([this, i] {
        while (!done) {
          static_cast<void>(turn_[i].wait());
          ++turns;
          turn_[1 - i].signal();
        }
        turn_[1 - i].signal();
      }));
    }
    turn_[0].signal();
  }

  std::atomic<bool> done = false;
  std::uint64_t turns = 0;

 private:
  event turn_[2];
};

class lifo_turns : public testing::TestWithParam<unsigned> {};

TEST_P(lifo_turns, limits_the_wait_of_those_that_are_ready) {
  const unsigned bound = GetParam();
  rig r(1, {.lifo_turns = bound});
  std::uint64_t longest = 0;
  std::uint64_t total = 0;
  r.rt.run([&] {
    ping_pong pair;
    std::vector<pirn::fiber> all;
    pair.start(all);
    for (int i = 0; i < 3; ++i) {
      pirn::this_fiber::yield();  // they began like all others, and are woken from then on
    }
    for (int i = 0; i < scaled(5000); ++i) {
      const std::uint64_t before = pair.turns;
      pirn::this_fiber::yield();
      longest = std::max(longest, pair.turns - before);
    }
    total = pair.turns;
    pair.done = true;
    join_all(all);
  });
  RecordProperty("longest", static_cast<int>(longest));
  EXPECT_EQ(longest, bound);
  EXPECT_GE(total, static_cast<std::uint64_t>(scaled(5000)) * bound / 2);
}

INSTANTIATE_TEST_SUITE_P(bounds, lifo_turns, testing::Values(1u, 3u, 16u));

/// One fiber is woken, and then buried under others that wake each other until it has run.
class buried : public testing::TestWithParam<unsigned> {
 protected:
  struct options {
    pirn::fiber_priority pair = pirn::fiber_priority::normal;
    bool somebody_yields = false;
  };
  /// Returns the turns that others had before it ran, or `most`.
  std::uint64_t turns_before(const options& what) {
    rig r(1, {.lifo_turns = GetParam()});
    std::uint64_t before = most;
    r.rt.run([&] {
      event patience, turn[2];
      std::uint64_t turns = 0;
      bool done = false;
      std::vector<pirn::fiber> all;
      all.push_back(pirn::spawn([&] {
        static_cast<void>(patience.wait());
        before = turns;
        done = true;
      }));
      for (int i = 0; i < 2; ++i) {
        all.push_back(pirn::spawn(
            [&, i] {
              static_cast<void>(turn[i].wait());
              if (i == 0) {
                patience.signal();
              }
              while (!done && turns < most) {
                ++turns;
                turn[1 - i].signal();
                static_cast<void>(turn[i].wait());
              }
              turn[1 - i].signal();
            },
            {.priority = what.pair}));
      }
      if (what.somebody_yields) {
        all.push_back(pirn::spawn([&] {
          while (!done && turns < most) {
            pirn::this_fiber::yield();
          }
        }));
      }
      pirn::this_fiber::yield();
      turn[0].signal();
      join_all(all);
    });
    return before;
  }
  static constexpr std::uint64_t most = 100'000;
};

TEST_P(buried, under_fibers_that_wake_each_other_it_has_its_turn) { EXPECT_LE(turns_before({}), GetParam() + 2); }
TEST_P(buried, so_it_has_while_somebody_yields) {
  EXPECT_LE(turns_before({.somebody_yields = true}), 2 * GetParam() + 4);
}
TEST_P(buried, so_it_has_under_those_of_high_priority) {
  EXPECT_LE(turns_before({.pair = pirn::fiber_priority::high, .somebody_yields = true}), 3 * 32);
}

INSTANTIATE_TEST_SUITE_P(bounds, buried, testing::Values(0u, 1u, 3u, 16u));

TEST(fairness, everyone_in_the_ring_gets_turns_beside_the_woken) {
  rig r(1);
  std::array<int, 5> turns = {};
  r.rt.run([&] {
    ping_pong pair;
    std::vector<pirn::fiber> all;
    pair.start(all);
    for (int& mine : turns) {
      all.push_back(pirn::spawn([&] {
        while (!pair.done) {
          ++mine;
          pirn::this_fiber::yield();
        }
      }));
    }
    for (int i = 0; i < 1000; ++i) {
      pirn::this_fiber::yield();
    }
    pair.done = true;
    join_all(all);
  });
  for (const int t : turns) {
    EXPECT_GE(t, 990);
    EXPECT_LE(t, 1010);
  }
}

// The constant work of fibers that never lets their worker rest.
enum class noise { yields, yields_alone, wakes };

class polling : public testing::TestWithParam<noise> {
 protected:
  /// Runs `body` beside the noise on worker 0. The body must end all the same.
  template <class F>
  void beside_noise(rig& r, F body) {
    pirn::fiber noisy = r.rt.spawn(
        [this] {
          ping_pong pair;
          std::vector<pirn::fiber> all;
          if (GetParam() == noise::wakes) {
            pair.start(all);
            while (!done_) {
              static_cast<void>(pirn::this_fiber::sleep_for(100us));
            }
          } else {
            for (int i = 0; i < 3 && GetParam() == noise::yields; ++i) {
              all.push_back(pirn::spawn([this] { yield_until_done(); }));
            }
            yield_until_done();
          }
          pair.done = true;
          join_all(all);
        },
        {.worker = 0});
    body();
    done_ = true;
    noisy.join();
  }

 private:
  void yield_until_done() {
    while (!done_) {
      pirn::this_fiber::yield();
    }
  }
  std::atomic<bool> done_ = false;
};

TEST_P(polling, timers_fire) {
  rig r(2);
  beside_noise(r, [&] {
    r.rt.spawn(
            [] {
              for (int i = 0; i < 20; ++i) {
                const auto due = clock::now() + 200us;
                static_cast<void>(pirn::this_fiber::sleep_until(due));
                EXPECT_LT(clock::now() - due, 2s);
              }
            },
            {.worker = 0})
        .join();
  });
}

TEST_P(polling, fibers_from_other_threads_run) {
  rig r(2);
  beside_noise(r, [&] {
    for (int i = 0; i < 15; ++i) {
      r.rt.spawn([] {}, {.worker = 0}).join();
    }
    r.rt.spawn(
            [] {
              for (int i = 0; i < 15; ++i) {
                pirn::spawn([] {}, {.worker = 0}).join();
              }
            },
            {.worker = 1})
        .join();
  });
}

TEST_P(polling, descriptors_become_ready) {
  rig r(2);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  beside_noise(r, [&] {
    std::atomic<int> received = 0;
    pirn::fiber reader = r.rt.spawn(
        [&] {
          std::error_code error;
          pirn::engine& engine = *pirn::detail::current_worker()->io;
          pirn::readiness* const handle = engine.attach(ends[0], pirn::io_direction::read, error);
          ASSERT_NE(handle, nullptr);
          char byte;
          while (received < 20) {
            if (::read(ends[0], &byte, 1) == 1) {
              ++received;
            } else {
              static_cast<void>(handle->wait(pirn::io_direction::read, pirn::platform::never));
            }
          }
          engine.detach(handle);
        },
        {.worker = 0});
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(::write(ends[1], "x", 1), 1);
      EXPECT_TRUE(eventually([&] { return received > i; }));
    }
    reader.join();
  });
  ::close(ends[0]);
  ::close(ends[1]);
}

INSTANTIATE_TEST_SUITE_P(noises, polling, testing::Values(noise::yields, noise::yields_alone, noise::wakes));

TEST(fairness, a_flood_from_another_thread_does_not_starve_the_fibers_here) {
  std::atomic<bool> done = false;
  std::atomic<int> flood = 0;
  rig r(2);
  pirn::fiber sender = r.rt.spawn(
      [&] {
        for (int sent = 0; !done;) {
          if (sent - flood < 1000) {
            pirn::spawn([&] { ++flood; }, {.worker = 0}).detach();
            ++sent;
          } else {
            pirn::this_fiber::yield();
          }
        }
      },
      {.worker = 1});
  r.rt.spawn(
          [&] {
            while (flood < 100) {
              pirn::this_fiber::yield();
            }
            for (int i = 0; i < scaled(2000); ++i) {  // each time up to 1000 fibers of the flood run
              pirn::this_fiber::yield();
            }
          },
          {.worker = 0})
      .join();
  done = true;
  sender.join();
}

TEST(fairness, what_one_thread_hands_over_runs_in_order) {
  rig r(1);
  std::vector<int> order;
  std::vector<pirn::fiber> all;
  std::atomic<bool> busy = false;
  std::atomic<bool> full = false;
  pirn::fiber blocker = r.rt.spawn([&] {
    busy = true;
    while (!full) {  // does not switch: the inbox fills
      std::this_thread::yield();
    }
  });
  ASSERT_TRUE(eventually([&] { return busy.load(); }));
  for (int i = 0; i < 100; ++i) {
    all.push_back(r.rt.spawn([&, i] { order.push_back(i); }));
  }
  full = true;
  blocker.join();
  join_all(all);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

// ---- time slices ---------------------------------------------------------------------------------------------------

/// Computes, with preemption points, until `enough()`.
template <class Predicate>
void compute_with_points_until(Predicate enough) {
  while (!enough()) {
    pirn::this_fiber::preemption_point();
    pirn::platform::relax();
  }
}

TEST(time_slice, lets_a_ready_fiber_run_beside_one_that_computes) {
  rig r(1, {.time_slice = 2ms});
  r.rt.run([&] {
    bool ran = false;
    pirn::fiber ready = pirn::spawn([&] { ran = true; });
    const auto limit = clock::now() + 10s;
    compute_with_points_until([&] { return ran || clock::now() > limit; });
    EXPECT_TRUE(ran);
    ready.join();
  });
}

TEST(time_slice, lets_timers_fire_beside_one_that_computes) {
  rig r(1, {.time_slice = 2ms});
  r.rt.run([&] {
    bool awake = false;
    pirn::fiber sleeper = pirn::spawn([&] {
      static_cast<void>(pirn::this_fiber::sleep_for(1ms));
      awake = true;
    });
    const auto limit = clock::now() + 10s;
    compute_with_points_until([&] { return awake || clock::now() > limit; });
    EXPECT_TRUE(awake);
    sleeper.join();
  });
}

TEST(time_slice, is_endless_unless_one_is_asked_for) {
  rig r(1);
  r.rt.run([&] {
    bool ran = false;
    pirn::fiber ready = pirn::spawn([&] { ran = true; });
    const auto limit = clock::now() + 30ms;
    compute_with_points_until([&] { return clock::now() > limit; });
    EXPECT_FALSE(ran);
    ready.join();
  });
}

TEST(time_slice, ends_only_when_it_is_over) {
  rig r(1, {.time_slice = 20ms});
  r.rt.run([&] {
    int turns = 0;
    bool done = false;
    pirn::fiber other = pirn::spawn([&] {
      while (!done) {
        pirn::this_fiber::yield();
        ++turns;
      }
    });
    pirn::this_fiber::yield();
    turns = 0;
    const auto began = clock::now();
    compute_with_points_until([&] { return clock::now() - began > 400ms; });
    const auto passed = clock::now() - began;
    EXPECT_GE(turns, 1);
    EXPECT_LE(turns, passed / 30ms + 1);  // one and a half slices each
    done = true;
    other.join();
  });
}

TEST(time_slice, of_a_fiber_for_any_worker_lets_it_move_to_an_idle_one) {
  rig r(2, {.time_slice = 2ms});
  r.rt.run([&] {
    std::atomic<int> ended = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(pirn::spawn(
          [&] {
            const auto began = clock::now();
            compute_with_points_until([&] { return clock::now() - began > 20ms; });
            ++ended;
          },
          {.worker = pirn::spawn_options::any_worker, .migratable = true}));
    }
    join_all(all);
    EXPECT_EQ(ended, 4);
  });
}

TEST(time_slice, does_nothing_on_a_plain_thread) { pirn::this_fiber::preemption_point(); }

/// Returns how often the thread of the time slices has slept; -1 if there is none.
long sleeps_of_slices() {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream name(each.path() / "comm");
    std::string text;
    if (name >> text && text == "pirn-slices") {
      std::ifstream status(each.path() / "status");
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("voluntary_ctxt_switches:")) {
          return std::stol(line.substr(line.find(':') + 1));
        }
      }
    }
  }
  return -1;
}

TEST(time_slice, costs_nothing_while_all_fibers_wait_and_is_there_again_afterwards) {
  rig r(2, {.idle_spin = 0ms, .time_slice = 2ms});
  static_cast<void>(pirn::this_fiber::sleep_for(50ms));
  const long before = sleeps_of_slices();
  ASSERT_GE(before, 0);
  static_cast<void>(pirn::this_fiber::sleep_for(400ms));
  EXPECT_LE(sleeps_of_slices() - before, 40);  // otherwise 400
  r.rt.spawn(
          [&] {
            bool ran = false;
            pirn::fiber ready = pirn::spawn([&] { ran = true; });
            const auto limit = clock::now() + 10s;
            compute_with_points_until([&] { return ran || clock::now() > limit; });
            EXPECT_TRUE(ran);
            ready.join();
          },
          {.worker = 1})
      .join();
}

TEST(time_slice, is_counted_on_the_calling_thread_while_that_waits) {
  pirn::runtime on_this_thread({.workers = 1, .calling_thread = true, .time_slice = 2ms});
  std::this_thread::sleep_for(20ms);
  on_this_thread.run([&] {
    bool ran = false;
    pirn::fiber ready = pirn::spawn([&] { ran = true; });
    const auto limit = clock::now() + 10s;
    compute_with_points_until([&] { return ran || clock::now() > limit; });
    EXPECT_TRUE(ran);
    ready.join();
  });
}

// Their stacks are fetched ahead, those of one tick together.
TEST(fairness, a_tick_is_short_while_more_fibers_are_ready_than_fit_the_cache) {
  constexpr std::uint64_t many = 5000;
  rig r(1);
  r.rt.run([&] {
    bool done = false;
    std::uint64_t turns = 0;
    std::vector<pirn::fiber> all;
    for (std::uint64_t i = 0; i < many; ++i) {
      all.push_back(pirn::spawn([&] {
        while (!done) {
          pirn::this_fiber::yield();
          ++turns;
        }
      }));
    }
    const pirn::detail::worker& here = *pirn::detail::current_worker();
    EXPECT_TRUE(eventually([&] {
      pirn::this_fiber::yield();
      return here.counters.ready.load(pirn::platform::memory_order_relaxed) >= many;
    }));
    unsigned longest = 0;
    for (int i = 0; i < 20; ++i) {
      pirn::this_fiber::yield();
      longest = std::max(longest, here.budget.of_tick());
    }
    EXPECT_LE(longest, 64U);
    EXPECT_GT(turns, 20 * (many - 1));  // all of them have had their turns meanwhile
    done = true;
    join_all(all);
  });
}

}  // namespace
