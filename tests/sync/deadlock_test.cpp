// Certain deadlocks are reported, with the fibers and what they wait for; nothing else is ever reported. A deadlock
// does not end, so each is made in a child process.
#include <unistd.h>

#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "fiber/support.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/expert/engine.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/fiber/spawned.hpp"
#include "pirn/sync/barrier.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/co.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/shared_mutex.hpp"
#include "stack/support.hpp"

namespace {

using namespace pirn_test;
using stack_test::child_result;

constexpr int told = 3;      // exit status of a child whose handler was called
constexpr int not_told = 4;  // and of a child that continued without that

/// Writes the handler's report to standard error and ends the process.
void tell(const pirn::deadlock& found) {
  const std::string text = (found.what == pirn::deadlock::kind::cycle ? "cycle of " : "standstill of ") +
                           std::to_string(found.fibers.size()) + "\n" + found.report;
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
  std::_Exit(told);
}

pirn::runtime_options looking_soon(unsigned workers, pirn::deadlock_handler handler = &tell) {
  return {.workers = workers, .on_deadlock = std::move(handler), .deadlock_delay = 5ms};
}

child_result in_child(const std::function<void()>& body) {
  return stack_test::in_child([&] {
    alarm(60);  // a child that hangs is a failure
    body();
    return not_told;
  });
}

/// Expects that the child continues for a time in which a deadlock would be reported.
void expect_not_told(const std::function<void()>& body) {
  const child_result of = in_child(body);
  EXPECT_TRUE(of.exited_with(not_told)) << of.status << of.error_output;
}

/// Keeps that many workers busy, so that no standstill is seen.
void keep_busy(pirn::runtime& rt, int workers) {
  for (int worker = 0; worker < workers; ++worker) {
    rt.spawn(
          [] {
            for (;;) {
              pirn::this_fiber::yield();
            }
          },
          {.name = "busy", .worker = worker})
        .detach();
  }
}

// ---- cycles -------------------------------------------------------------------------------------------------------

/// Has each of `count` fibers lock its own mutex and then that of the next fiber, on any workers.
template <class Mutex>
void lock_in_a_ring(pirn::runtime& rt, int count, int workers) {
  std::vector<Mutex> locks(static_cast<std::size_t>(count));
  pirn::latch all_locked(count);
  std::vector<pirn::fiber> fibers;
  for (int i = 0; i < count; ++i) {
    fibers.push_back(rt.spawn(
        [&, i] {
          const std::lock_guard own(locks[static_cast<std::size_t>(i)]);
          static_cast<void>(all_locked.arrive_and_wait());
          const std::lock_guard next(locks[static_cast<std::size_t>((i + 1) % count)]);
        },
        {.name = "number " + std::to_string(i), .worker = i % workers}));
  }
  join_all(fibers);
}

TEST(deadlock, of_mutexes_ends_the_process_by_default) {
  const child_result of = in_child([] {
    std::printf("what was buffered");
    pirn::runtime rt({.workers = 2, .deadlock_delay = 5ms});
    lock_in_a_ring<pirn::mutex>(rt, 2, 2);
  });
  EXPECT_TRUE(of.exited_with(pirn::deadlock_exit_status)) << of.status;
  EXPECT_TRUE(of.says("a cycle of fibers, each of which waits for the next one\n")) << of.error_output;
  EXPECT_TRUE(of.says("\"number 0\" waits for mutex at 0x"));
  EXPECT_TRUE(of.says("\"number 1\" waits for mutex at 0x"));
  EXPECT_TRUE(of.says(": 2 workers, 2 fibers\n"));
  EXPECT_TRUE(of.says(", held by fiber "));
  EXPECT_TRUE(of.says("lock_in_a_ring")) << "no backtraces: " << of.error_output;
}

TEST(deadlock, is_found_on_workers_that_are_busy_and_on_those_that_sleep) {
  for (const int busy : {0, 1, 2}) {
    const child_result of = in_child([&] {
      pirn::runtime rt(looking_soon(2));
      keep_busy(rt, busy);
      lock_in_a_ring<pirn::mutex>(rt, 3, 2);
    });
    EXPECT_TRUE(of.exited_with(told)) << busy << ": " << of.status << of.error_output;
    EXPECT_TRUE(of.says("cycle of 3\n")) << of.error_output;
  }
}

/// Has two fibers on two workers each lock a mutex and then the other's. The first worker sleeps last, so it looks
/// after the delay. At that time the second fiber has slept and runs again, for long, before it waits.
void look_while_one_runs(pirn::runtime& rt) {
  pirn::mutex first_lock;
  pirn::mutex second_lock;
  pirn::latch both_locked(2);
  std::vector<pirn::fiber> fibers;
  fibers.push_back(rt.spawn(
      [&] {
        const std::lock_guard own(first_lock);
        static_cast<void>(both_locked.arrive_and_wait());
        std::this_thread::sleep_for(20ms);
        const std::lock_guard other(second_lock);
      },
      {.name = "first", .worker = 0}));
  fibers.push_back(rt.spawn(
      [&] {
        const std::lock_guard own(second_lock);
        static_cast<void>(both_locked.arrive_and_wait());
        static_cast<void>(pirn::this_fiber::sleep_for(50ms));
        std::this_thread::sleep_for(200ms);
        const std::lock_guard other(first_lock);
      },
      {.name = "second", .worker = 1}));
  join_all(fibers);
}

TEST(deadlock, is_found_if_one_worker_looked_while_the_other_ran) {
  const child_result of = in_child([] {
    pirn::runtime rt({.workers = 2, .on_deadlock = &tell, .deadlock_delay = 100ms});
    look_while_one_runs(rt);
  });
  EXPECT_TRUE(of.exited_with(told)) << of.status << of.error_output;
  EXPECT_TRUE(of.says("cycle of 2\n")) << of.error_output;
}

TEST(deadlock, is_found_beside_a_fiber_that_waits_for_time_to_pass) {
  const child_result of = in_child([] {
    pirn::runtime rt({.workers = 2, .on_deadlock = &tell, .deadlock_delay = 100ms});
    rt.spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(1h)); }, {.worker = 0}).detach();
    look_while_one_runs(rt);
  });
  EXPECT_TRUE(of.exited_with(told)) << of.status << of.error_output;
  EXPECT_TRUE(of.says("cycle of 2\n")) << of.error_output;
}

TEST(deadlock, of_other_locks) {
  EXPECT_TRUE(in_child([] {
                pirn::runtime rt(looking_soon(1));
                lock_in_a_ring<pirn::recursive_mutex>(rt, 2, 1);
              }).says("cycle of 2\n"));
  EXPECT_TRUE(in_child([] {
                pirn::runtime rt(looking_soon(1));
                lock_in_a_ring<pirn::shared_mutex>(rt, 2, 1);
              }).says("cycle of 2\n"));
  for (const int workers : {1, 2}) {
    const child_result of = in_child([&] {
      pirn::runtime rt(looking_soon(static_cast<unsigned>(workers)));
      keep_busy(rt, 1);  // otherwise a standstill may be reported if that is seen first
      lock_in_a_ring<pirn::biased_mutex>(rt, 3, workers);
    });
    EXPECT_TRUE(of.says("cycle of 3\n")) << workers << ": " << of.status << of.error_output;
  }
  // A writer that also wants to read under its own lock.
  EXPECT_TRUE(in_child([] {
                pirn::runtime rt(looking_soon(1));
                rt.run([] {
                  pirn::shared_mutex lock;
                  const std::unique_lock writes(lock);
                  const std::shared_lock reads(lock);
                });
              }).says("cycle of 1\n"));
}

TEST(deadlock, of_one_mutex_and_one_fiber) {
  const child_result of = in_child([] {
    pirn::runtime rt(looking_soon(2));
    rt.run([] {
      pirn::mutex lock(pirn::mutex_policy::barging);
      const std::lock_guard once(lock);
      const std::lock_guard twice(lock);
    });
  });
  EXPECT_TRUE(of.exited_with(told)) << of.status;
  EXPECT_TRUE(of.says("cycle of 1\n")) << of.error_output;
}

TEST(deadlock, of_who_joins_what_waits_for_its_lock) {
  const child_result of = in_child([] {
    pirn::runtime rt(looking_soon(2));
    keep_busy(rt, 2);
    rt.run([] {
      pirn::mutex lock;
      const std::lock_guard held(lock);
      pirn::spawn([&] { const std::lock_guard wanted(lock); }, {.name = "wants", .worker = 1}).join();
    });
  });
  EXPECT_TRUE(of.exited_with(told)) << of.status;
  EXPECT_TRUE(of.says("cycle of 2\n")) << of.error_output;
  EXPECT_TRUE(of.says(" waits for end of fiber at 0x")) << of.error_output;
}

TEST(deadlock, of_a_scope_one_of_whose_children_waits_for_the_opener) {
  const child_result of = in_child([] {
    pirn::runtime rt(looking_soon(2));
    keep_busy(rt, 2);
    rt.run([] {
      pirn::mutex lock;
      pirn::scope s;
      const std::lock_guard held(lock);
      for (int worker : {0, 1}) {
        s.spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(1h)); }, {.worker = worker});
      }
      s.spawn([&] { const std::lock_guard wanted(lock); }, {.name = "child", .worker = 1});
      s.join();
    });
  });
  EXPECT_TRUE(of.exited_with(told)) << of.status;
  EXPECT_TRUE(of.says("cycle of 2\n")) << of.error_output;
  EXPECT_TRUE(of.says(" waits for children of a scope at 0x")) << of.error_output;
  EXPECT_TRUE(of.says("  one of them is fiber ")) << of.error_output;
}

TEST(deadlock, is_told_once_in_a_fiber_and_the_others_go_on) {
  expect_not_told([] {
    pirn::latch found(1);
    std::atomic<int> times{0};
    std::atomic<std::uint64_t> teller{0};
    pirn::runtime rt(looking_soon(2, [&](const pirn::deadlock& what) {
      times += what.fibers.size() == 2 ? 1 : 100;
      teller = pirn::this_fiber::number();
      found.count_down();
    }));
    keep_busy(rt, 2);
    rt.spawn([&] { lock_in_a_ring<pirn::mutex>(rt, 2, 2); }).detach();
    static_cast<void>(found.wait());
    std::this_thread::sleep_for(100ms);  // some rounds more
    std::_Exit(times == 1 && teller != 0 ? not_told : 5);
  });
}

TEST(deadlock, is_none_where_a_deadline_or_a_stop_may_end_a_wait) {
  expect_not_told([] {
    pirn::runtime rt(looking_soon(2));
    keep_busy(rt, 1);
    pirn::mutex first;
    pirn::mutex second;
    pirn::latch both(2);
    const auto lock_both = [&](pirn::mutex& one, pirn::mutex& other, pirn::platform::time_point until) {
      const std::lock_guard held(one);
      static_cast<void>(both.arrive_and_wait());
      static_cast<void>(other.lock(until).has_value() && (other.unlock(), true));
    };
    pirn::fiber a = rt.spawn([&] { lock_both(first, second, clock::now() + 100ms); }, {.worker = 0});
    pirn::fiber b = rt.spawn([&] { lock_both(second, first, pirn::platform::never); }, {.worker = 1});
    a.join();
    b.join();
    std::_Exit(not_told);
  });
}

#if defined(PIRN_TSAN)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "ThreadSanitizer has threads of its own, which pirn does not know"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

// ---- standstill ---------------------------------------------------------------------------------------------------

TEST(deadlock, of_a_runtime_in_which_nothing_happens_any_more) {
  SKIP_UNDER_TSAN();
  for (const unsigned workers : {1U, 2U, 3U}) {
    const child_result of = in_child([&] {
      pirn::runtime rt(looking_soon(workers));
      pirn::channel<int> nobody_sends;
      pirn::counting_semaphore<> permits(0);
      std::vector<pirn::fiber> fibers;
      for (int worker = 0; worker < static_cast<int>(workers); ++worker) {
        fibers.push_back(
            rt.spawn([&] { static_cast<void>(nobody_sends.receive()); }, {.name = "hopes", .worker = worker}));
        fibers.push_back(rt.spawn([&] { static_cast<void>(permits.acquire()); }, {.worker = worker}));
      }
      fibers.push_back(rt.spawn([&] { static_cast<void>(permits.acquire()); }, {.migratable = true}));
      join_all(fibers);
    });
    EXPECT_TRUE(of.exited_with(told)) << workers << ": " << of.status << of.error_output;
    EXPECT_TRUE(of.says("standstill of 0\n")) << of.error_output;
    EXPECT_TRUE(of.says("\"hopes\": waiting for value in channel at 0x")) << of.error_output;
  }
}

TEST(deadlock, of_a_runtime_on_the_calling_thread) {
  SKIP_UNDER_TSAN();
  for (const unsigned workers : {1U, 2U}) {
    const auto all_wait = [workers](bool one_sleeps) {
      pirn::runtime rt({.workers = workers, .calling_thread = true, .on_deadlock = &tell, .deadlock_delay = 5ms});
      rt.run([&] {
        pirn::counting_semaphore<> permits(0);
        pirn::fiber sleeper;
        if (one_sleeps) {
          sleeper = pirn::spawn([&] {
            static_cast<void>(pirn::this_fiber::sleep_for(100ms));
            permits.release();
          });
        }
        static_cast<void>(permits.acquire());
        if (one_sleeps) {
          sleeper.join();
        }
      });
    };
    const child_result of = in_child([&] { all_wait(false); });
    EXPECT_TRUE(of.exited_with(told)) << workers << ": " << of.status << of.error_output;
    EXPECT_TRUE(of.says("standstill of 0\n")) << of.error_output;
    EXPECT_TRUE(of.says("waiting for semaphore at 0x")) << of.error_output;
    expect_not_told([&] { all_wait(true); });
  }
}

TEST(deadlock, is_none_while_the_calling_thread_polls) {
  SKIP_UNDER_TSAN();
  for (const unsigned workers : {1U, 2U}) {
    expect_not_told([workers] {
      pirn::runtime rt({.workers = workers, .calling_thread = true, .on_deadlock = &tell, .deadlock_delay = 5ms});
      pirn::counting_semaphore<> permits(0);
      pirn::fiber waiter = rt.spawn([&] { static_cast<void>(permits.acquire()); });
      const auto poll_with = [](const auto& poll) {
        for (const auto end = clock::now() + 100ms; clock::now() < end;) {
          poll();
        }
      };
      poll_with([] { pirn::this_fiber::yield(); });
      poll_with([] { static_cast<void>(pirn::this_fiber::sleep_for(0ms)); });
      permits.release();
      waiter.join();
    });
  }
}

// Without a stack for the handler the scheduler calls it, and no switch may leave the scheduler.
TEST(deadlock, a_handler_that_has_no_fiber_may_hand_over) {
  SKIP_UNDER_TSAN();
  expect_not_told([] {
    pirn::guarded_pool pool({.max_stacks = 1});
    pirn::channel<int> words;
    pirn::channel<std::string> objects;
    int handled = 0;
    const auto hand_over = [&](const pirn::deadlock& /*what*/) {
      const auto sent = ++handled == 1 ? words.send(7, pirn::wake_policy::switch_over, clock::now())
                                       : objects.send("x", pirn::wake_policy::switch_over, clock::now());
      if (!sent || pirn::this_fiber::number() != 0) {
        std::_Exit(5);
      }
    };
    pirn::runtime rt({.workers = 1, .stacks = &pool, .on_deadlock = hand_over, .deadlock_delay = 5ms});
    rt.run([&] {
      const bool right = words.receive() == 7 && objects.receive() == "x";
      std::_Exit(right && handled == 2 ? not_told : 6);
    });
  });
}

TEST(deadlock, is_seen_while_a_runtime_is_destroyed) {
  SKIP_UNDER_TSAN();
  for (int i = 0; i < 10; ++i) {  // now and then the last worker to sleep has run nothing
    const child_result of = in_child([] {
      pirn::latch never(1);
      pirn::runtime rt(looking_soon(2));
      rt.spawn([&] { static_cast<void>(never.wait()); }).detach();
    });
    ASSERT_TRUE(of.exited_with(told)) << of.status << of.error_output;
  }
}

TEST(deadlock, of_a_task_that_no_fiber_awaits) {
  SKIP_UNDER_TSAN();
  const child_result of = in_child([] {
    pirn::channel<int> never;
    pirn::runtime rt(looking_soon(2));
    rt.run([&] {
      const auto waits = [](pirn::channel<int>& from) -> pirn::task<> {
        static_cast<void>(co_await pirn::co::receive(from));
      };
      pirn::co::spawn(waits(never)).detach();
    });
  });
  ASSERT_TRUE(of.exited_with(told)) << of.status << of.error_output;
}

TEST(deadlock, is_seen_once_the_last_foreign_thread_has_gone) {
  SKIP_UNDER_TSAN();
  const child_result of = in_child([] {
    pirn::latch never(1);
    pirn::runtime rt(looking_soon(2));
    rt.run([&] {
      pirn::blocking([] {});  // its thread stays
      std::thread([] { std::this_thread::sleep_for(60ms); }).detach();
      static_cast<void>(never.wait());
    });
  });
  EXPECT_TRUE(of.exited_with(told)) << of.status << of.error_output;
}

/// Lets a fiber wait, longer than a report takes, for an event that `set_up` brings about.
void expect_patience(const std::function<void(pirn::runtime&, event&)>& set_up) {
  expect_not_told([&] {
    event come;
    pirn::runtime rt(looking_soon(2));
    set_up(rt, come);
    rt.run([&] { come.wait(); });
    std::_Exit(not_told);
  });
}

constexpr auto long_enough = 100ms;

TEST(deadlock, is_none_where_time_a_descriptor_a_call_a_thread_or_a_signal_may_wake) {
  expect_patience([](pirn::runtime& rt, event& come) {
    rt.spawn([&] {
        static_cast<void>(pirn::this_fiber::sleep_for(long_enough));
        come.signal();
      }).detach();
  });
  expect_patience([](pirn::runtime& rt, event& come) {
    rt.spawn([&] {
        pirn::blocking([] { std::this_thread::sleep_for(long_enough); });
        come.signal();
      }).detach();
  });
  expect_patience([](pirn::runtime&, event& come) {
    std::thread([&] {
      std::this_thread::sleep_for(long_enough);
      come.signal();
    }).detach();
  });
  expect_patience([](pirn::runtime&, event& come) {
    static event* target;
    target = &come;
    signal(SIGALRM, [](int) { target->signal(); });
    ualarm(static_cast<useconds_t>(std::chrono::microseconds(long_enough).count()), 0);
  });
  expect_patience([](pirn::runtime& rt, event& come) {  // a thread that waits, but not for ever
    std::thread([&] {
      event nothing;
      static_cast<void>(nothing.wait({.deadline = clock::now() + long_enough}));
      come.signal();
    }).detach();
    static_cast<void>(rt);
  });
  expect_patience([](pirn::runtime& rt, event& come) {  // a scope that expires
    rt.spawn([&] {
        pirn::scope s({.deadline = clock::now() + long_enough});
        event nothing;
        nothing.wait();
        come.signal();
      }).detach();
  });
}

// A worker keeps its findings until it looks again. By then other fibers may use the same blocks, in waits with the
// same epochs. Here a fiber that waited is followed by a fiber that holds the lock for which its own follower waits.
TEST(deadlock, is_none_with_fibers_that_have_ended) {
  expect_not_told([] {
    pirn::runtime rt(looking_soon(2));
    rt.run([] {
      const auto wait_for_each_other = [](int owner, bool no_more_looks) {
        pirn::mutex lock;
        pirn::latch held(1);
        pirn::latch enough(1);
        std::atomic<bool> end{!no_more_looks};
        pirn::fiber holds = pirn::spawn(
            [&] {
              const std::lock_guard own(lock);
              held.count_down();
              static_cast<void>(enough.wait());
            },
            {.worker = owner});
        static_cast<void>(held.wait());
        pirn::fiber waits = pirn::spawn([&] { const std::lock_guard other(lock); }, {.worker = 1 - owner});
        pirn::fiber spins = pirn::spawn(
            [&] {
              while (!end) {
              }
            },
            {.worker = 1});
        static_cast<void>(pirn::this_fiber::sleep_for(30ms));
        end = true;
        enough.count_down();
        spins.join();
        holds.join();
        waits.join();  // so that its block is the first to be reused
      };
      for (int i = 0; i < 20; ++i) {
        wait_for_each_other(0, false);
        wait_for_each_other(1, true);
      }
    });
  });
}

// Many waits for each other, but never in a circle, while the runtime looks for deadlocks all the time.
TEST(deadlock, is_never_told_without_one) {
  std::atomic<int> reports{0};
  for (const unsigned workers : {1U, 2U}) {
    pirn::runtime rt({.workers = workers,
                      .on_deadlock =
                          [&](const pirn::deadlock& what) {
                            ++reports;
                            ADD_FAILURE() << what.report;
                          },
                      .deadlock_delay = 1us});
    const auto limit = clock::now() + 250ms;
    std::vector<pirn::mutex> locks(4);
    pirn::shared_mutex shared;
    const auto work = [&](unsigned seed) {
      pirn::platform::random numbers(seed);
      while (clock::now() < limit) {
        const std::size_t low = numbers.next() % 3;
        const std::lock_guard one(locks[low]);
        if (numbers.next() % 4 == 0) {
          pirn::this_fiber::yield();
        }
        const std::lock_guard other(locks[low + 1 + numbers.next() % (3 - low)]);
        switch (numbers.next() % 8) {
          case 0:
            static_cast<void>(pirn::this_fiber::sleep_for(20us));
            break;
          case 1:
            pirn::spawn([&] { const std::shared_lock reads(shared); }, {.worker = pirn::spawn_options::any_worker})
                .join();
            break;
          case 2: {
            const std::lock_guard writes(shared);
            pirn::this_fiber::yield();
            break;
          }
          case 3: {
            pirn::scope s;
            s.spawn([] { pirn::this_fiber::yield(); });
            s.spawn([&] { const std::lock_guard writes(shared); });
            s.join();
            break;
          }
          default:
            pirn::this_fiber::yield();
        }
      }
    };
    std::vector<pirn::fiber> fibers;
    for (unsigned i = 0; i < 12; ++i) {
      fibers.push_back(
          rt.spawn([&, i] { work(i); }, {.worker = static_cast<int>(i % workers), .migratable = i % 3 == 0}));
    }
    // The only foreign thread waits most of the time.
    event ping;
    event pong;
    std::atomic<bool> done{false};
    fibers.push_back(rt.spawn([&] {
      while (clock::now() < limit) {
        ping.signal();
        pong.wait();
      }
      done = true;
      ping.signal();
    }));
    while (!done) {
      ping.wait();
      pong.signal();
    }
    join_all(fibers);
  }
  EXPECT_EQ(reports, 0);
}

}  // namespace
