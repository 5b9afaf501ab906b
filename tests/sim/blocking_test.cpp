// Calls that block, made on separate threads: how calls and results are handed over, and threads that begin and end.
#include <pirn/fiber/blocking.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sync/event.hpp>

#include <stdexcept>

#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;
using pirn_test::run_fibers;

namespace {

TEST(blocking, calls_of_two_workers_take_turns_on_one_thread) {
  expect_passes([] {
    sim::var<int> calls(0);  // no lock: all calls run on one thread
    const auto call = [&] {
      const int mine = blocking([&] {
        calls += 1;
        return static_cast<int>(calls);
      });
      sim::check(mine == 1 || mine == 2);
    };
    run_fibers({.workers = 2, .max_blocking_threads = 1}, {call, call});
    sim::check(calls == 2, "both were made");
  });
}

TEST(blocking, threads_for_both_if_there_may_be_two) {
  expect_passes(
      [] {
        event first;
        event second;
        const auto meet = [](event& own, event& other) {
          blocking([&] {
            own.set();
            static_cast<void>(other.wait());
          });
        };
        run_fibers({.workers = 2, .max_blocking_threads = 2},
                   {[&] { meet(first, second); }, [&] { meet(second, first); }});
      },
      {.preemptions = 1});
}

TEST(blocking, the_worker_runs_others_meanwhile) {
  expect_passes([] {
    event happened;
    run_fibers({.workers = 1},
               {[&] { blocking([&] { static_cast<void>(happened.wait()); }); }, [&] { happened.set(); }});
  });
}

TEST(blocking, what_it_throws_comes_back) {
  expect_passes(
      [] {
        run_fibers({.workers = 1}, {[] {
                     bool caught = false;
                     try {
                       blocking([] { throw std::runtime_error("x"); });
                     } catch (const std::runtime_error&) {
                       caught = true;
                     }
                     sim::check(caught);
                   }});
      },
      {.preemptions = 3});
}

// The thread ends at the very time at which it is needed again.
TEST(blocking, a_thread_that_ends_takes_no_call_with_it) {
  expect_passes([] {
    int calls = 0;
    run_fibers({.workers = 1, .max_blocking_threads = 1, .blocking_idle_time = 1ms}, {[&] {
                 blocking([&] { ++calls; });
                 static_cast<void>(this_fiber::sleep_for(1ms));
                 blocking([&] { ++calls; });
               }});
    sim::check(calls == 2);
  });
}

// Where no thread can be had at once, a call waits for the existing one.
TEST(blocking, more_calls_than_threads_wait_their_turn) {
  expect_passes(
      [] {
        int calls = 0;
        const auto call = [&] { blocking([&] { ++calls; }); };
        run_fibers({.workers = 1, .max_blocking_threads = 1}, {call, call, call});
        sim::check(calls == 3);
      },
      {.preemptions = 1});
}

}  // namespace
