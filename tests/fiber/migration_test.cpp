// Migratable fibers continue on any worker, with all their state.
#include <atomic>
#include <random>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
using pirn::this_fiber::migrate_to;

const pirn::spawn_options migratable{.migratable = true};

/// Called out of line, as the rule for migratable fibers demands.
PIRN_NOINLINE std::thread::id thread_here() { return std::this_thread::get_id(); }
PIRN_NOINLINE std::exception_ptr caught_here() { return std::current_exception(); }
PIRN_NOINLINE int uncaught_here() { return std::uncaught_exceptions(); }

std::vector<std::thread::id> threads_of(pirn::runtime& rt) {
  std::vector<std::thread::id> all(rt.statistics().workers);
  for (std::size_t i = 0; i < all.size(); ++i) {
    rt.spawn([&all, i] { all[i] = std::this_thread::get_id(); }, {.worker = static_cast<int>(i)}).join();
  }
  return all;
}

TEST(migration, to_a_named_worker) {
  rig r(3);
  const std::vector<std::thread::id> threads = threads_of(r.rt);
  r.rt.spawn(
          [&] {
            for (std::size_t i = 0; i < static_cast<std::size_t>(scaled(5000)); ++i) {
              EXPECT_TRUE(migrate_to(i % 3));
              EXPECT_EQ(thread_here(), threads[i % 3]);
              EXPECT_TRUE(migrate_to(i % 3));
              EXPECT_EQ(thread_here(), threads[i % 3]);
            }
          },
          migratable)
      .join();
}

TEST(migration, errors) {
  rig r(2);
  EXPECT_EQ(migrate_to(0), std::unexpected(pirn::migrate_error::not_migratable));
  r.rt.run([] { EXPECT_EQ(migrate_to(0), std::unexpected(pirn::migrate_error::not_migratable)); });
  r.rt.spawn(
          [] {
            EXPECT_EQ(migrate_to(2), std::unexpected(pirn::migrate_error::no_such_worker));
            EXPECT_TRUE(migrate_to(0));
            {
              pirn::scope s({.deadline = clock::now() + 1h});
              EXPECT_EQ(migrate_to(1), std::unexpected(pirn::migrate_error::has_deadline));
              EXPECT_TRUE(migrate_to(0));
              EXPECT_TRUE(pirn::this_fiber::sleep_for(1us));
              pirn::scope inner({.deadline = clock::now() + 30min});
              EXPECT_EQ(migrate_to(1), std::unexpected(pirn::migrate_error::has_deadline));
            }
            EXPECT_TRUE(migrate_to(1));
          },
          migratable)
      .join();
}

TEST(migration, woken_while_its_worker_computes) {
  rig r(2);
  for (const bool from_a_thread : {false, true}) {
    for (int i = 0; i < scaled(500); ++i) {
      event go;
      std::atomic<int> waits = 0;
      std::atomic<bool> went_on = false;
      pirn::fiber moves = r.rt.spawn(
          [&] {
            EXPECT_TRUE(migrate_to(0));
            waits = 1;
            EXPECT_EQ(go.wait(), pirn::wake_reason::notified);
            went_on = true;
          },
          {.worker = 0, .migratable = true});
      compute_until([&] { return waits == 1; });
      pirn::fiber computes = r.rt.spawn(
          [&] {
            if (!from_a_thread) {
              go.signal();
            }
            waits = 2;
            compute_until([&] { return went_on.load(); });
          },
          {.worker = 0});
      compute_until([&] { return waits == 2; });
      if (from_a_thread) {
        go.signal();
      }
      moves.join();
      computes.join();
    }
  }
}

TEST(migration, those_that_wake_each_other_come_together) {
  rig r(2);
  constexpr int turns = 20'000;
  for (int round = 0; round < 3; ++round) {
    event ping, pong;
    std::atomic<bool> alone = false;
    std::atomic<bool> went_on = false;
    const auto stolen = [&] { return r.rt.statistics(0).stolen + r.rt.statistics(1).stolen; };
    const std::uint64_t before = stolen();
    pirn::fiber one = r.rt.spawn(
        [&] {
          for (int i = 0; i < turns; ++i) {
            ping.signal();
            EXPECT_EQ(pong.wait(), pirn::wake_reason::notified);
          }
          alone = true;
          ping.signal();
          // Now only a worker that sleeps most of the time looks for the other fiber.
          compute_until([&] { return went_on.load(); });
        },
        {.worker = 0, .migratable = true});
    pirn::fiber other = r.rt.spawn(
        [&] {
          while (!alone) {
            EXPECT_EQ(ping.wait(), pirn::wake_reason::notified);
            pong.signal();
          }
          went_on = true;
        },
        {.worker = 1, .migratable = true});
    one.join();
    other.join();
    EXPECT_LT(stolen() - before, turns / 10u);
  }
}

/// The searcher that takes the first fiber does not see the last one, so another worker must take it.
TEST(migration, all_that_were_woken_go_on_while_their_waker_computes) {
  rig r(3);
  r.rt.spawn(
          [] {
            for (int i = 0; i < scaled(300); ++i) {
              event go;
              std::atomic<int> waits = 0;
              std::atomic<int> went_on = 0;
              std::vector<pirn::fiber> all;
              for (int n = 0; n < 2; ++n) {
                all.push_back(pirn::spawn(
                    [&] {
                      ++waits;
                      EXPECT_EQ(go.wait(), pirn::wake_reason::notified);
                      ++went_on;
                      compute_until([&] { return went_on == 2; });
                    },
                    migratable));
              }
              while (waits < 2) {
                pirn::this_fiber::yield();
              }
              EXPECT_TRUE(pirn::this_fiber::sleep_for(i % 2 == 0 ? 2ms : 20us));  // others fall asleep, or not
              go.signal();
              go.signal();
              compute_until([&] { return went_on == 2; });
              join_all(all);
            }
          },
          migratable)
      .join();
}

TEST(migration, the_woken_do_not_lie_behind_those_that_yield) {
  rig r(2);
  std::atomic<bool> done = false;
  std::vector<pirn::fiber> others;
  for (int i = 0; i < 2; ++i) {
    others.push_back(r.rt.spawn(
        [&] {
          while (!done) {
            pirn::this_fiber::yield();
          }
        },
        {.worker = 0}));
  }
  r.rt.spawn(
          [] {
            for (int round = 0; round < scaled(100); ++round) {
              constexpr int number = 12;
              event go;
              std::atomic<int> waits = 0;
              std::atomic<int> went_on = 0;
              std::vector<pirn::fiber> all;
              for (int n = 0; n < number; ++n) {
                all.push_back(pirn::spawn(
                    [&] {
                      ++waits;
                      EXPECT_EQ(go.wait(), pirn::wake_reason::notified);
                      ++went_on;
                      compute_until([&] { return went_on > 1; });  // so one of them is on another worker
                    },
                    migratable));
              }
              while (waits < number) {
                pirn::this_fiber::yield();
              }
              EXPECT_TRUE(pirn::this_fiber::sleep_for(2ms));
              for (int n = 0; n < number; ++n) {
                go.signal();
              }
              join_all(all);
            }
          },
          {.worker = 0})
      .join();
  done = true;
  join_all(others);
}

/// The others are woken again and again, on workers that are always busy.
TEST(migration, a_new_one_has_its_turn_beside_those_that_are_woken) {
  constexpr int woken = 4;
  rig r(2);
  std::atomic<bool> done = false;
  std::vector<event> go(2);
  std::vector<pirn::fiber> all;
  for (std::size_t i = 0; i < 2; ++i) {
    const int worker = static_cast<int>(i);
    all.push_back(r.rt.spawn(
        [&, i] {
          while (!done) {
            go[i].signal();
            const auto until = clock::now() + 100us;
            compute_until([&] { return clock::now() > until; });
            pirn::this_fiber::yield();
          }
          for (int n = 0; n < woken; ++n) {
            go[i].signal();
          }
        },
        {.worker = worker}));
    for (int n = 0; n < woken; ++n) {
      all.push_back(r.rt.spawn(
          [&, i] {
            while (!done) {
              EXPECT_EQ(go[i].wait(), pirn::wake_reason::notified);
            }
          },
          {.worker = worker, .migratable = true}));
    }
  }
  for (int i = 0; i < scaled(50); ++i) {
    std::atomic<bool> ran = false;
    pirn::fiber late = r.rt.spawn([&] { ran = true; }, migratable);
    EXPECT_TRUE(eventually([&] { return ran.load(); }));
    late.join();
  }
  done = true;
  for (pirn::fiber& f : all) {
    EXPECT_TRUE(f.join(clock::now() + 10s));
  }
}

/// When the calling thread leaves its worker, other workers take the fibers that this worker keeps.
TEST(migration, left_behind_by_the_calling_thread) {
  rig r(2, {.calling_thread = true});
  for (int i = 0; i < scaled(200); ++i) {
    event of_thread, of_fiber;
    std::atomic<int> waits = 0;
    std::atomic<bool> went_on = false;
    pirn::fiber other = r.rt.spawn(
        [&] {
          waits = 1;
          EXPECT_EQ(of_fiber.wait(), pirn::wake_reason::notified);
          went_on = true;
        },
        {.worker = 0, .migratable = true});
    pirn::fiber waker = r.rt.spawn(
        [&] {
          while (waits == 0) {
            pirn::this_fiber::yield();
          }
          pirn::this_fiber::yield();
          of_thread.signal();
          of_fiber.signal();
        },
        {.worker = 0});
    EXPECT_EQ(of_thread.wait(), pirn::wake_reason::notified);
    compute_until([&] { return went_on.load(); });
    other.join();
    waker.join();
  }
}

/// As the test above, but the others have enough to do, and fibers are woken or spawned there in the thread's absence.
TEST(migration, those_of_the_idle_caller_have_turns_beside_others) {
  rig r(2, {.calling_thread = true});
  std::atomic<bool> done = false;
  std::vector<event> ping(3), pong(3);
  std::vector<std::atomic<long>> turns(6);
  std::vector<pirn::fiber> all;
  for (std::size_t i = 0; i < 3; ++i) {
    all.push_back(r.rt.spawn(
        [&, i] {
          while (!done) {
            ++turns[3 + i];
            pirn::this_fiber::yield();
          }
        },
        migratable));
    all.push_back(r.rt.spawn(
        [&, i] {
          while (!done) {
            ++turns[i];
            ping[i].signal();
            EXPECT_EQ(pong[i].wait(), pirn::wake_reason::notified);
          }
          ping[i].signal();
        },
        migratable));
    all.push_back(r.rt.spawn(
        [&, i] {
          while (!done) {
            EXPECT_EQ(ping[i].wait(), pirn::wake_reason::notified);
            pong[i].signal();
          }
        },
        migratable));
  }
  for (int round = 0; round < scaled(100); ++round) {
    EXPECT_TRUE(pirn::this_fiber::sleep_for(round % 2 == 0 ? 300us : 10us));
    std::atomic<bool> ran = false;
    pirn::fiber late = r.rt.spawn([&] { ran = true; }, {.worker = pirn::spawn_options::any_worker});
    for (const std::atomic<long>& each : turns) {
      const long before = each;
      compute_until([&] { return each != before; });
    }
    compute_until([&] { return ran.load(); });
    late.join();
  }
  done = true;
  for (pirn::fiber& f : all) {
    EXPECT_TRUE(f.join(clock::now() + 10s));
  }
}

/// A worker that its thread leaves during a search no longer searches, and others must not rely on it.
TEST(migration, the_idle_caller_does_not_count_as_searching) {
  rig r(2, {.calling_thread = true});
  for (int i = 0; i < scaled(300); ++i) {
    r.rt.spawn([] {}, {.worker = 1}).join();
    const auto until = clock::now() + (i % 2 == 0 ? 1ms : 50us);
    compute_until([&] { return clock::now() > until; });  // the other worker falls asleep
    std::atomic<bool> ran = false;
    pirn::fiber f = r.rt.spawn([&] { ran = true; }, {.worker = pirn::spawn_options::any_worker});
    compute_until([&] { return ran.load(); });
    f.join();
  }
}

TEST(migration, those_that_yield_spread) {
  rig r(2);
  std::atomic<int> moved = 0;
  r.rt.run([&] {
    const auto here = thread_here();
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 2; ++i) {
      all.push_back(pirn::spawn(
          [&] {
            while (moved == 0) {
              pirn::this_fiber::yield();
              if (thread_here() != here) {
                ++moved;
              }
            }
          },
          migratable));
    }
    join_all(all);
  });
  EXPECT_GT(moved, 0);
}

TEST(migration, exceptions_move_along) {
  rig r(2);
  r.rt.spawn(
          [] {
            struct moves_when_destroyed {
              std::size_t to;
              ~moves_when_destroyed() {
                EXPECT_EQ(uncaught_here(), 1);
                EXPECT_TRUE(migrate_to(to));
                EXPECT_EQ(uncaught_here(), 1);
              }
            };
            for (std::size_t i = 0; i < static_cast<std::size_t>(scaled(1000)); ++i) {
              try {
                const moves_when_destroyed mark{i % 2};
                throw static_cast<int>(i);
              } catch (int value) {
                EXPECT_EQ(value, static_cast<int>(i));
                const std::exception_ptr before = caught_here();
                EXPECT_TRUE(migrate_to((i + 1) % 2));
                EXPECT_EQ(caught_here(), before);
                EXPECT_THROW(
                    {
                      EXPECT_TRUE(migrate_to(i % 2));
                      std::rethrow_exception(caught_here());
                    },
                    int);
              }
              EXPECT_EQ(caught_here(), nullptr);
              EXPECT_EQ(uncaught_here(), 0);
            }
          },
          migratable)
      .join();
}

TEST(migration, what_is_the_fibers_stays_its_own) {
  static pirn::fiber_local<int> mine;
  rig r(2);
  pirn::fiber f = r.rt.spawn(
      [] {
        const std::uint64_t id = pirn::this_fiber::number();
        mine.emplace(7);
        for (std::size_t i = 0; i < 100; ++i) {
          EXPECT_TRUE(migrate_to(i % 2));
          EXPECT_EQ(*mine.find(), 7);
          EXPECT_EQ(pirn::this_fiber::number(), id);
          EXPECT_EQ(pirn::this_fiber::name(), "nomad");
        }
      },
      {.name = "nomad", .migratable = true});
  f.join();
}

TEST(migration, waits_with_deadlines) {
  rig r(3);
  r.rt.run([&] {
    for (int round = 0; round < scaled(500); ++round) {
      event go;
      std::vector<pirn::fiber> all;
      for (std::size_t i = 0; i < 6; ++i) {
        all.push_back(pirn::spawn(
            [&go, i] {
              EXPECT_TRUE(migrate_to(i % 3));
              const auto here = thread_here();
              const pirn::wake_reason why = go.wait({.deadline = clock::now() + (i < 3 ? 1h : 100us)});
              EXPECT_EQ(thread_here(), here);  // the timer belonged to this worker
              EXPECT_NE(why, pirn::wake_reason::stopped);
              EXPECT_TRUE(migrate_to((i + 1) % 3));
              EXPECT_TRUE(pirn::this_fiber::sleep_for(1us));
            },
            migratable));
      }
      for (int i = 0; i < 6; ++i) {
        go.signal();
        pirn::this_fiber::yield();
      }
      join_all(all);
    }
  });
}

TEST(migration, stops_reach_it_wherever_it_is) {
  rig r(3);
  r.rt.run([&] {
    for (int round = 0; round < scaled(1000); ++round) {
      event never;
      std::atomic<int> stopped = 0;
      std::vector<pirn::fiber> all;
      for (std::size_t i = 0; i < 6; ++i) {
        all.push_back(pirn::spawn(
            [&, i] {
              EXPECT_TRUE(migrate_to(i % 3));
              stopped += never.wait() == pirn::wake_reason::stopped ? 1 : 0;
            },
            migratable));
      }
      for (pirn::fiber& f : all) {
        f.request_stop();
        pirn::this_fiber::yield();
      }
      join_all(all);
      EXPECT_EQ(stopped, 6);
    }
  });
}

int tree(int depth) {
  if (depth == 0) {
    return 1;
  }
  int left = 0;
  pirn::fiber child = pirn::spawn([&] { left = tree(depth - 1); }, migratable);
  int right = 0;
  pirn::fiber pinned = pirn::spawn([&] { right = depth > 1 ? tree(depth - 2) : 0; });
  pirn::this_fiber::yield();
  child.join();
  if (!pinned.join(clock::now() + 10us)) {
    pinned.join();
  }
  return left + right;
}

TEST(migration, joins_across_workers) {
  rig r(4);
  for (int i = 0; i < scaled(30); ++i) {
    int sum = 0;
    r.rt.spawn([&] { sum = tree(12); }, migratable).join();
    EXPECT_EQ(sum, 233);
  }
}

TEST(migration, scopes_opened_by_one) {
  rig r(3);
  r.rt.spawn(
          [] {
            for (int i = 0; i < scaled(500); ++i) {
              pirn::scope s;
              std::atomic<int> sum = 0;
              for (int n = 1; n <= 10; ++n) {
                s.spawn([&, n] { sum += n; }, {.worker = pirn::spawn_options::any_worker, .migratable = n % 2 == 0});
              }
              s.join();
              EXPECT_EQ(sum, 55);
              pirn::scope hurried({.deadline = clock::now() + 20us});
              EXPECT_EQ(pirn::this_fiber::sleep_for(1h), std::unexpected(pirn::wait_error::expired));
            }
          },
          migratable)
      .join();
}

}  // namespace
