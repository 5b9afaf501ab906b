// The clocks of the standard library show an exploration's time, and threads sleep in that time.
#include <gtest/gtest.h>
#include <pirn/fiber/blocking.hpp>
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/scope.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sim/explore.hpp>
#include <pirn/sim/thread.hpp>
#include <pirn/sim/var.hpp>
#include <pirn/sync/event.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

using namespace pirn;
using namespace std::chrono_literals;

namespace {

template <class Clock>
void an_hour_and_a_little_less() {
  runtime fibers({.workers = 2});
  bool done = false;
  fiber slow = fibers.spawn([&] {
    static_cast<void>(this_fiber::sleep_for(1h));
    done = true;
  });
  fiber quick = fibers.spawn([] { sim::check(this_fiber::sleep_until(Clock::now() + 59min).has_value()); });
  quick.join();
  sim::check(!done, "59 minutes take longer than an hour");
  slow.join();
  sim::check(sim::elapsed() == 1h);
}

TEST(clock, is_the_one_of_deadlines) {
  for (const auto& program :
       {an_hour_and_a_little_less<std::chrono::steady_clock>, an_hour_and_a_little_less<platform::clock>}) {
    const sim::result found = sim::explore(program, {.preemptions = 1});
    EXPECT_TRUE(found && found.complete) << found.text();
  }
}

TEST(clock, of_the_calendar_is_the_same_in_each_execution) {
  const sim::result found = sim::explore([] {
    runtime fibers({.workers = 1});
    fibers
        .spawn([] {
          using namespace std::chrono;
          sim::check(system_clock::now() == sys_days(2000y / January / 1));
          const std::chrono::time_point before = system_clock::now();
          static_cast<void>(this_fiber::sleep_for(90min));
          sim::check(system_clock::now() - before == 90min);
        })
        .join();
  });
  EXPECT_TRUE(found) << found.text();
}

TEST(clock, lets_blocked_threads_sleep) {
  const auto began = std::chrono::steady_clock::now();
  const sim::result found = sim::explore(
      [] {
        runtime fibers({.workers = 1});
        fibers.run([] {
          scope both;
          for (int i = 0; i < 2; ++i) {
            both.spawn([] { blocking([] { std::this_thread::sleep_for(24h); }); });
          }
          both.join();
          sim::check(sim::elapsed() == 24h, "they sleep at the same time");
          std::this_thread::sleep_until(std::chrono::system_clock::now() + 1h);
          std::this_thread::sleep_until(std::chrono::steady_clock::now() + 1h);
          sim::check(sim::elapsed() == 26h);
        });
      },
      {.preemptions = 0});
  EXPECT_TRUE(found && found.complete) << found.text();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1h);
}

template <class Clock>
void look_at_it_in_a_loop() {
  for (const std::chrono::nanoseconds wait : {std::chrono::nanoseconds(2ms), std::chrono::nanoseconds(1h)}) {
    const sim::result found = sim::explore([&] {
      const auto begin = Clock::now();
      bool other = false;
      sim::thread sleeper([&] {
        std::this_thread::sleep_for(wait / 2);
        other = true;
      });
      while (Clock::now() < begin + wait) {
      }
      sim::check(other, "time has stood still for the others");
      sim::check(sim::elapsed() < wait + wait / 4, "it went on without looking");
    });
    EXPECT_TRUE(found && found.complete) << found.text();
  }
  const sim::result yields = sim::explore(
      [] {
        runtime fibers({.workers = 1});
        fibers.run([] {
          const auto until = Clock::now() + 1s;
          while (Clock::now() < until) {
            this_fiber::yield();
          }
        });
      },
      {.preemptions = 0});
  EXPECT_TRUE(yields) << yields.text();
}

struct clock_of_pirn {
  static platform::time_point now() { return platform::now(); }
};

TEST(clock, passes_for_a_loop_that_looks_at_it) {
  look_at_it_in_a_loop<std::chrono::steady_clock>();
  look_at_it_in_a_loop<clock_of_pirn>();
}

TEST(clock, passes_to_each_deadline_in_its_turn) {
  // The timers of a worker with ready fibers count too.
  const auto beside_one_who_yields = [](auto waits, int workers) {
    return [=] {
      runtime fibers({.workers = static_cast<unsigned>(workers)});
      sim::atomic<bool> done = false;
      fiber yields = fibers.spawn(
          [&] {
            while (!done.load()) {
              this_fiber::yield();
            }
          },
          {.worker = 0});
      fiber waiting = fibers.spawn(
          [&] {
            waits();
            done = true;
          },
          {.worker = 0});
      fiber late = fibers.spawn([] { static_cast<void>(this_fiber::sleep_for(10s)); }, {.worker = workers - 1});
      waiting.join();
      late.join();
      yields.join();
      sim::check(sim::elapsed() >= 10s && sim::elapsed() < 11s);
    };
  };
  const auto sleeps = [] {
    const auto began = sim::elapsed();
    static_cast<void>(this_fiber::sleep_for(3ms));
    sim::check(sim::elapsed() - began == 3ms, "a sleep of some milliseconds has taken others");
  };
  const auto has_a_deadline = [] {
    event never_set;
    const auto began = sim::elapsed();
    sim::check(!never_set.wait(platform::now() + 3ms));
    sim::check(sim::elapsed() - began == 3ms);
  };
  for (const int workers : {1, 2}) {
    for (const auto& program : {std::function<void()>(beside_one_who_yields(sleeps, workers)),
                                std::function<void()>(beside_one_who_yields(has_a_deadline, workers))}) {
      const sim::result found = sim::explore(program, {.executions = 50});
      EXPECT_TRUE(found) << found.text();
    }
  }
}

TEST(clock, does_not_step_over_work) {
  const sim::result found = sim::explore(
      [] {
        runtime fibers({.workers = 2});
        sim::var<int> count(0);
        event done;
        fiber works = fibers.spawn(
            [&] {
              for (int i = 0; i < 6000; ++i) {
                count = count + 1;
              }
              done.set();
            },
            {.worker = 0});
        sim::check(done.wait(platform::now() + 1h).has_value(), "an hour has passed");
        works.join();
      },
      {.executions = 20});
  EXPECT_TRUE(found) << found.text();
}

TEST(clock, of_another_thread_is_the_real_one) {
  std::atomic<bool> end = false;
  std::atomic<unsigned> looks = 0, wrong = 0;
  std::thread beside([&] {  // as a framework may have one, from before the exploration
    const auto began = std::chrono::steady_clock::now();
    while (!end.load()) {
      const auto before = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(1ms);
      const auto slept = std::chrono::steady_clock::now() - before;
      wrong += slept < 1ms || slept > 1h || before < began ? 1 : 0;
      ++looks;
    }
  });
  while (looks.load() < 20) {
    EXPECT_TRUE(sim::explore(an_hour_and_a_little_less<std::chrono::steady_clock>,
                             {.strategy = sim::strategy::random, .executions = 200}));
  }
  end = true;
  beside.join();
  EXPECT_EQ(wrong.load(), 0U);
}

TEST(clock, is_the_real_one_outside_of_explorations) {
  const auto steady = std::chrono::steady_clock::now();
  const auto calendar = std::chrono::system_clock::now();
  EXPECT_GT(calendar.time_since_epoch(), std::chrono::hours(24 * 365 * 50));
  std::this_thread::sleep_for(2ms);
  EXPECT_GE(std::chrono::steady_clock::now() - steady, 2ms);
  EXPECT_GE(std::chrono::system_clock::now() - calendar, 1ms);
  EXPECT_LT(std::chrono::system_clock::now() - calendar, 1h);
}

}  // namespace
