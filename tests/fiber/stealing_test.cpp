// Fibers that any worker may start, and workers that search for such fibers before they sleep.
#include <algorithm>
#include <atomic>
#include <random>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;

const pirn::spawn_options anywhere{.worker = pirn::spawn_options::any_worker};

/// Runs `body` in a fiber on another worker than the caller's. Waits for its beginning without a suspension.
template <class F>
pirn::fiber spawn_stolen(F body, const pirn::spawn_options& options = anywhere) {
  std::atomic<bool> begun = false;
  pirn::fiber f = pirn::spawn(
      [&begun, body]() mutable {
        begun = true;
        body();
      },
      options);
  compute_until([&] { return begun.load(); });
  return f;
}

template <class Member>
std::uint64_t sum_of(const pirn::runtime& rt, Member member) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < rt.statistics().workers; ++i) {
    sum += rt.statistics(i).*member;
  }
  return sum;
}

TEST(stealing, work_of_a_worker_that_computes_is_taken) {
  for (const unsigned workers : {2u, 4u}) {
    rig r(workers);
    std::atomic<int> ended = 0;
    r.rt.run([&] {
      const auto here = std::this_thread::get_id();
      std::vector<pirn::fiber> all;
      for (int i = 0; i < 100; ++i) {
        all.push_back(pirn::spawn(
            [&] {
              EXPECT_NE(std::this_thread::get_id(), here);
              ++ended;
            },
            anywhere));
      }
      compute_until([&] { return ended == 100; });
      join_all(all);
    });
  }
}

TEST(stealing, work_from_a_thread_passes_by_a_worker_that_computes) {
  rig r(2);
  std::atomic<bool> go = false;
  std::atomic<bool> computes = false;
  pirn::fiber busy = r.rt.spawn(
      [&] {
        computes = true;
        compute_until([&] { return go.load(); });
      },
      {.worker = 0});
  compute_until([&] { return computes.load(); });
  for (int i = 0; i < 50; ++i) {  // half of them are queued with the worker that computes
    r.rt.spawn([] {}, anywhere).join();
  }
  EXPECT_EQ(r.rt.statistics(1).ended, 50u);
  EXPECT_GE(r.rt.statistics(1).stolen, 25u);
  go = true;
  busy.join();
}

TEST(stealing, a_fiber_stays_where_it_has_begun) {
  rig r(3);
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (int i = 0; i < scaled(300); ++i) {
      all.push_back(pirn::spawn(
          [i] {
            const auto here = std::this_thread::get_id();
            for (int turn = 0; turn < 20; ++turn) {
              if (i % 2 == 0) {
                pirn::this_fiber::yield();
              } else {
                static_cast<void>(pirn::this_fiber::sleep_for(10us));
              }
              EXPECT_EQ(std::this_thread::get_id(), here);
            }
            EXPECT_EQ(pirn::this_fiber::migrate_to(0), std::unexpected(pirn::migrate_error::not_migratable));
          },
          anywhere));
    }
    join_all(all);
  });
}

TEST(stealing, a_plain_fiber_is_not_taken) {
  rig r(3);
  r.rt.run([&] {
    const auto here = std::this_thread::get_id();
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 100; ++i) {
      all.push_back(pirn::spawn([&] { EXPECT_EQ(std::this_thread::get_id(), here); }));
      spawn_stolen([] {}).join();  // another worker is awake
    }
    join_all(all);
  });
}

TEST(stealing, first_in_first_out) {
  rig r(1);
  r.rt.run([&] {
    std::vector<int> order;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 50; ++i) {
      all.push_back(pirn::spawn([&, i] { order.push_back(i); }, anywhere));
    }
    join_all(all);
    EXPECT_EQ(order.size(), 50u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  });
}

TEST(stealing, a_joiner_begins_the_child_that_it_waits_for) {
  for (const int joined : {0, 1, 2}) {
    rig r(1);
    r.rt.run([&] {
      std::vector<int> order;
      std::vector<pirn::fiber> all;
      for (int i = 0; i < 3; ++i) {
        all.push_back(pirn::spawn([&, i] { order.push_back(i); }, anywhere));
      }
      all[static_cast<std::size_t>(joined)].join();
      EXPECT_EQ(order, std::vector<int>{joined});  // no other one has begun
      for (pirn::fiber& each : all) {
        if (each.joinable()) {
          each.join();
        }
      }
      EXPECT_EQ(order.size(), 3u);
    });
  }
}

TEST(stealing, fibers_that_only_yield_do_not_starve_it) {
  rig r(1);
  r.rt.run([&] {
    int left = 20;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < left; ++i) {
      all.push_back(pirn::spawn([&] { --left; }, anywhere));
    }
    std::vector<pirn::fiber> ring;
    for (int i = 0; i < 3; ++i) {
      ring.push_back(pirn::spawn([&] {
        while (left > 0) {
          pirn::this_fiber::yield();
        }
      }));
    }
    join_all(ring);
    join_all(all);
  });
}

TEST(stealing, the_ends_of_a_stolen_fiber) {
  rig r(2);
  static std::atomic<int> unhandled;
  unhandled = 0;
  const auto before = pirn::set_unhandled_exception_handler(
      // NOLINTNEXTLINE(performance-unnecessary-value-param)
      [](std::uint64_t, std::string_view, std::exception_ptr) noexcept { ++unhandled; });
  r.rt.run([&] {
    std::atomic<int> ended = 0;
    for (int i = 0; i < scaled(500); ++i) {
      spawn_stolen([&] { ++ended; }).join();
      pirn::fiber fails = spawn_stolen([] { throw std::runtime_error("stolen"); });
      EXPECT_THROW(fails.join(), std::runtime_error);
      spawn_stolen([&] {
        ++ended;
        throw 1;
      }).detach();
      pirn::fiber sleeps =
          spawn_stolen([&] { EXPECT_EQ(pirn::this_fiber::sleep_for(1h), std::unexpected(pirn::wait_error::stopped)); });
      sleeps.request_stop();
      EXPECT_TRUE(sleeps.join(clock::now() + 30s));
      std::atomic<bool> go = false;
      pirn::fiber late = spawn_stolen([&] { compute_until([&] { return go.load(); }); });
      EXPECT_EQ(late.join(clock::now() + 1us), std::unexpected(pirn::wait_error::timed_out));
      go = true;
      late.join();
    }
    EXPECT_EQ(ended, 2 * scaled(500));
  });
  EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
  EXPECT_EQ(unhandled, scaled(500));
  pirn::set_unhandled_exception_handler(before);
}

TEST(stealing, stopped_before_it_begins) {
  rig r(2);
  r.rt.run([&] {
    for (int i = 0; i < scaled(2000); ++i) {
      pirn::stop_source source;
      std::atomic<int> stopped = 0;
      pirn::fiber f =
          pirn::spawn([&] { stopped += pirn::this_fiber::sleep_for(1h) ? 0 : 1; },
                      {.name = "named", .worker = pirn::spawn_options::any_worker, .stop = source.get_token()});
      if (i % 2 == 0) {
        f.request_stop();
      } else {
        source.request_stop();
      }
      f.join();
      EXPECT_EQ(stopped, 1);
    }
  });
}

TEST(stealing, children_of_a_scope) {
  rig r(3);
  r.rt.run([&] {
    for (int round = 0; round < scaled(200); ++round) {
      pirn::scope s({.worker = pirn::spawn_options::any_worker});
      const auto here = std::this_thread::get_id();
      std::atomic<int> stopped = 0;
      std::atomic<int> elsewhere = 0;
      for (int i = 0; i < 10; ++i) {
        s.spawn([&] {
          elsewhere += std::this_thread::get_id() != here ? 1 : 0;
          stopped += pirn::this_fiber::sleep_for(1h) ? 0 : 1;
        });
      }
      compute_until([&] { return elsewhere == 10; });
      s.spawn([] { throw std::runtime_error("child"); });
      EXPECT_THROW(s.join(), std::runtime_error);
      EXPECT_EQ(stopped, 10);
    }
  });
}

TEST(stealing, stacks_go_back_where_the_fiber_ends) {
  rig r(2);
  r.rt.run([&] {
    for (int i = 0; i < scaled(20'000); ++i) {
      spawn_stolen([] {}).join();
    }
  });
  EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
  const auto stats = r.pool.statistics();
  EXPECT_EQ(stats.in_use, 0u);
  EXPECT_LT(stats.idle, 4000u);
}

TEST(stealing, one_worker_is_woken_for_one_fiber) {
  rig r(4);
  const int count = scaled(2000);
  std::uint64_t wakes = 0;
  r.rt.run([&] {
    spawn_stolen([] {}).join();
    EXPECT_TRUE(eventually([&] { return sum_of(r.rt, &pirn::worker_statistics::parks) >= 3; }));
    const std::uint64_t parks_before = sum_of(r.rt, &pirn::worker_statistics::parks);
    wakes = sum_of(r.rt, &pirn::worker_statistics::wakes);
    for (int i = 0; i < count; ++i) {
      spawn_stolen([] {}).detach();
    }
    wakes = sum_of(r.rt, &pirn::worker_statistics::wakes) - wakes;
    const std::uint64_t parks = sum_of(r.rt, &pirn::worker_statistics::parks) - parks_before;
    EXPECT_LE(wakes, static_cast<std::uint64_t>(count));
    EXPECT_LE(parks, wakes + 4);  // no other worker has woken up
  });
}

TEST(stealing, no_wake_up_is_lost_while_going_to_sleep) {
  // The next fiber comes after gaps around the time in which the worker of the last one goes to sleep.
  for (const unsigned workers : {2u, 3u}) {
    rig r(workers, {.idle_spin = {}});  // otherwise it may never sleep
    const int rounds = scaled(30'000);
    std::atomic<int> ended = 0;
    r.rt.run([&] {
      std::minstd_rand random(workers);
      for (int i = 0; i < rounds; ++i) {
        pirn::spawn([&] { ++ended; }, anywhere).detach();
        compute_until([&] { return ended > i; });
        for (auto spin = random() % 400; spin > 0; --spin) {
          pirn::platform::relax();
        }
      }
    });
    EXPECT_EQ(ended, rounds);
    EXPECT_GT(sum_of(r.rt, &pirn::worker_statistics::parks), workers);
  }
}

TEST(stealing, no_wake_up_is_lost_from_threads) {
  rig r(3);
  std::vector<std::jthread> threads;
  std::atomic<int> sum = 0;
  const int rounds = scaled(5000);
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i < rounds; ++i) {
        r.rt.spawn([&] { ++sum; }, anywhere).join();
        for (auto spin = random() % 1000; spin > 0; --spin) {
          pirn::platform::relax();
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(sum, 2 * rounds);
}

TEST(stealing, becomes_idle_again) {
  rig r(4);
  r.rt.run([&] { spawn_stolen([] {}).join(); });
  std::this_thread::sleep_for(50ms);
  const std::uint64_t parks = sum_of(r.rt, &pirn::worker_statistics::parks);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(sum_of(r.rt, &pirn::worker_statistics::parks), parks);
}

TEST(stealing, statistics) {
  rig r(2);
  r.rt.spawn([&] { spawn_stolen([] {}).join(); }, {.worker = 0}).join();
  EXPECT_TRUE(eventually([&] { return r.rt.statistics().live_fibers == 0; }));
  EXPECT_EQ(r.rt.statistics(0).spawned, 1u);
  EXPECT_EQ(r.rt.statistics(0).ended, 1u);
  EXPECT_EQ(r.rt.statistics(0).stolen, 0u);
  EXPECT_EQ(r.rt.statistics(1).ended, 1u);
  EXPECT_EQ(r.rt.statistics(1).steal_operations, 1u);
  EXPECT_EQ(r.rt.statistics(1).stolen, 1u);
  EXPECT_THROW(static_cast<void>(r.rt.statistics(2)), std::out_of_range);
}

}  // namespace
