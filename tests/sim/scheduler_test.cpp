// Workers: fibers that come from other threads and workers, ends and joins, sleep and wake-up, and fibers that move.
#include <pirn/fiber/fork_join.hpp>
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sync/event.hpp>
#include <pirn/sync/mutex.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"
#include "sim/watched_runtime.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;
using pirn_test::run_fibers;
using pirn_test::watched_runtime;

namespace {

// ---- the runtime itself -------------------------------------------------------------------------------------------

TEST(runtime, begins_and_ends) {
  expect_passes([] { const runtime empty{{.workers = 2}}; });
}

TEST(runtime, ends_after_its_fibers) {
  expect_passes(
      [] {
        sim::var<int> ran(0);
        {
          runtime all{{.workers = 1}};
          all.spawn([&] { ran += 1; }).detach();
        }
        sim::check(ran == 1, "the fiber has run");
      },
      {.preemptions = 3});
}

TEST(runtime, ends_after_fibers_of_all_its_workers) {
  expect_passes(
      [] {
        sim::atomic<int> ran{0};
        {
          std::optional<sim::one_schedule> unseen(std::in_place);
          runtime all{{.workers = 2}};
          all.spawn([&] { ran.fetch_add(1, std::memory_order_relaxed); }, {.worker = 0}).detach();
          all.spawn([&] { ran.fetch_add(1, std::memory_order_relaxed); }, {.worker = 1}).detach();
          unseen.reset();
        }
        sim::check(ran.load() == 2, "both have run");
      },
      {.preemptions = 3});
}

TEST(runtime, ends_where_the_last_fibers_of_two_workers_end_at_the_same_time) {
  const sim::result found = sim::explore(
      [] {
        runtime all{{.workers = 2}};
        all.spawn([] {}, {.worker = 0}).detach();
        all.spawn([] {}, {.worker = 1}).detach();
      },
      {.preemptions = 1, .stale_reads = true, .executions = 2000});
  EXPECT_TRUE(found) << found.text();
}

TEST(runtime, two_at_a_time) {
  expect_passes(
      [] {
        watched_runtime one(1);
        watched_runtime two(1);
        sim::var<int> sum(0);
        fiber first = one->spawn([&] { two->run([&] { sum += 1; }); });
        one.watch();
        two.watch();
        first.join();
        one.done();
        two.done();
        sim::check(sum == 1, "a fiber of the one has run one of the other");
      },
      {.preemptions = 3});
}

// ---- time slices --------------------------------------------------------------------------------------------------

TEST(preemption_point, lets_the_others_run) {
  expect_passes(
      [] {
        int turns = 0;
        bool done = false;
        run_fibers(1, {[&] {
                         for (int i = 0; i < 3; ++i) {
                           this_fiber::preemption_point();
                         }
                         done = true;
                       },
                       [&] { turns += done ? 2 : 1; }});
        sim::check(turns != 0, "both have run, in some order");
      },
      {.faults = {.preempt = true, .max_per_execution = 2}});
}

TEST(preemption_point, in_a_lock_keeps_the_lock) {
  expect_passes(
      [] {
        mutex lock;
        sim::var<int> inside(0);
        const auto body = [&] {
          const std::lock_guard held(lock);
          inside += 1;
          this_fiber::preemption_point();
          sim::check(inside == 1, "no other fiber is inside");
          inside -= 1;
        };
        run_fibers(2, {body, body, body});
      },
      {.preemptions = 1, .faults = {.preempt = true, .max_per_execution = 2}});
}

TEST(preemption_point, of_a_fiber_that_another_worker_takes_meanwhile) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> ran(0);
        fiber movable = all->spawn(
            [&] {
              ran += 1;
              this_fiber::preemption_point();
              ran += 1;
              this_fiber::preemption_point();
            },
            {.worker = spawn_options::any_worker, .migratable = true});
        all.watch();
        movable.join();
        all.done();
        sim::check(ran == 2, "it has run once, as a whole");
      },
      {.preemptions = 1, .faults = {.preempt = true, .max_per_execution = 2}});
}

TEST(preemption_point, of_a_fiber_that_is_stopped_meanwhile_returns) {
  expect_passes(
      [] {
        sim::var<bool> ended(false);
        run_fibers(1, {[&] {
                     fiber computes = spawn([&] {
                       this_fiber::preemption_point();
                       const bool asked = this_fiber::stop_requested();
                       this_fiber::preemption_point();
                       sim::check(!asked || this_fiber::stop_requested(), "a stop stays");
                       ended = true;
                     });
                     this_fiber::yield();
                     computes.request_stop();
                     computes.join();
                     sim::check(ended, "it has gone on behind its points");
                   }});
      },
      {.preemptions = 1, .faults = {.preempt = true, .max_per_execution = 2}});
}

// ---- hand-over, sleep and wake-up ---------------------------------------------------------------------------------

TEST(spawn, from_plain_threads) {
  expect_passes(
      [] {
        watched_runtime all(1);
        sim::atomic<int> ran{0};
        const auto spawn_one = [&] { all->spawn([&] { ran.fetch_add(1, std::memory_order_relaxed); }).join(); };
        sim::thread other(spawn_one);
        all.watch();
        spawn_one();
        other.join();
        all.done();
        sim::check(ran.load() == 2, "both have run");
      },
      {.preemptions = 3});
}

TEST(spawn, to_each_other_s_worker) {
  expect_passes([] {
    sim::var<int> ran[2] = {0, 0};
    const auto body = [&](int other) {
      return [&ran, other] { spawn([&ran, other] { ran[other] += 1; }, {.worker = other}).join(); };
    };
    run_fibers(2, {body(1), body(0)});
    sim::check(ran[0] == 1 && ran[1] == 1, "each has run once");
  });
}

TEST(spawn, by_one_sender_in_order) {
  expect_passes(
      [] {
        std::vector<int> order;
        watched_runtime all(1);
        all.watch();
        fiber first = all->spawn([&] { order.push_back(1); });
        fiber second = all->spawn([&] { order.push_back(2); });
        first.join();
        second.join();
        all.done();
        sim::check(order == std::vector{1, 2}, "the first is first");
      },
      {.preemptions = 3});
}

// ---- ends ---------------------------------------------------------------------------------------------------------

TEST(join, sees_what_the_fiber_did) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> result(0);
        fiber works = all->spawn([&] { result = 7; }, {.worker = 0});
        fiber waits = all->spawn(
            [&] {
              works.join();
              sim::check(result == 7, "it has run");
            },
            {.worker = 1});
        all.watch();
        waits.join();
        all.done();
      },
      {.preemptions = 3});
}

TEST(join, by_its_deadline_or_the_end) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> result(0);
        fiber works = all->spawn(
            [&] {
              static_cast<void>(this_fiber::sleep_for(1ms));
              result = 7;
            },
            {.worker = 0});
        fiber waits = all->spawn(
            [&] {
              if (!works.join(platform::now() + 1ms)) {
                works.join();
              }
              sim::check(result == 7, "it has ended, sooner or later");
            },
            {.worker = 1});
        all.watch();
        waits.join();
        all.done();
      },
      {.preemptions = 3});
}

TEST(join, by_another_worker_does_not_wait_for_who_runs_next) {
  const auto program = [] {
    watched_runtime all(2);
    sim::var<int> result(0);
    sim::atomic<bool> joined{false};
    fiber works;
    event made;
    fiber makes = all->spawn(
        [&] {
          works = spawn([&] { result = 7; });
          spawn([&] {
            while (!joined.load(std::memory_order_acquire)) {
              platform::yield_thread();  // this keeps its worker
            }
          }).detach();
          made.set();
        },
        {.worker = 0});
    fiber waits = all->spawn(
        [&] {
          static_cast<void>(made.wait());
          works.join();
          sim::check(result == 7, "it has run");
          joined.store(true, std::memory_order_release);
        },
        {.worker = 1});
    all.watch();
    makes.join();
    waits.join();
    all.done();
  };
  expect_passes(program);
  expect_passes(program, {.strategy = sim::strategy::random, .stale_reads = true, .executions = 2000});
}

TEST(detach, at_the_end) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> ran(0);
        event done;
        fiber works = all->spawn(
            [&] {
              ran += 1;
              done.set();
            },
            {.worker = 0});
        fiber leaves = all->spawn([mine = std::move(works)]() mutable { mine.detach(); }, {.worker = 1});
        all.watch();
        static_cast<void>(done.wait());
        leaves.join();
        all.done();
        sim::check(ran == 1, "it has run all the same");
      },
      {.preemptions = 3});
}

// ---- turns and places ---------------------------------------------------------------------------------------------

TEST(yield, takes_turns) {
  expect_passes([] {
    std::vector<int> turns;
    watched_runtime all(2);
    const auto takes_turns = [&](int who) {
      return [&turns, who] {
        for (int i = 0; i < 2; ++i) {
          turns.push_back(who);
          this_fiber::yield();
        }
      };
    };
    fiber one = all->spawn(takes_turns(1), {.worker = 0});
    fiber two = all->spawn(takes_turns(2), {.worker = 0});
    fiber comes = all->spawn([] { spawn([] {}, {.worker = 0}).join(); }, {.worker = 1});
    all.watch();
    one.join();
    two.join();
    comes.join();
    all.done();
    sim::check(turns == std::vector{1, 2, 1, 2}, "one after the other");
  });
}

TEST(migrate_to, goes_on_there_once) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> steps(0);
        const auto wanders = [&] {
          steps += 1;
          sim::check(this_fiber::migrate_to(1).has_value(), "there is such a worker");
          steps += 1;
          sim::check(this_fiber::migrate_to(0).has_value(), "there is such a worker");
          steps += 1;
        };
        fiber one = all->spawn(wanders, {.worker = 0, .migratable = true});
        all.watch();
        one.join();
        all.done();
        sim::check(steps == 3, "each step once");
      },
      {.preemptions = 3});
}

TEST(stealable, are_stolen_once) {
  // Four times as many steps as it needs, and fewer than fairness gives to a spinning thread: no thread may spin.
  const sim::options options{.steps = 2'000};
  const auto program = [] {
    watched_runtime all(2);
    sim::atomic<int> ran[2] = {0, 0};
    fiber makes = all->spawn(
        [&] {
          std::vector<fiber> made;
          for (auto& each : ran) {
            made.push_back(spawn([&each] { each.fetch_add(1, std::memory_order_relaxed); },
                                 {.worker = spawn_options::any_worker}));
          }
          for (fiber& each : made) {
            each.join();
          }
        },
        {.worker = 0});
    all.watch();
    makes.join();
    all.done();
    sim::check(ran[0].load() == 1 && ran[1].load() == 1, "each has run once");
  };
  expect_passes(program, options);
}

TEST(stealable, are_begun_by_a_joiner_or_a_thief) {
  const auto program = [] {
    watched_runtime all(2);
    sim::var<int> ran[2] = {0, 0};
    fiber makes = all->spawn(
        [&] {
          fiber first = spawn([&] { ran[0] += 1; }, {.worker = spawn_options::any_worker});
          fiber second = spawn([&] { ran[1] += 1; }, {.worker = spawn_options::any_worker});
          second.join();
          sim::check(ran[1] == 1, "a joined child has ended");
          first.join();
        },
        {.worker = 0});
    all.watch();
    makes.join();
    all.done();
    sim::check(ran[0] == 1 && ran[1] == 1, "each has run once");
  };
  expect_passes(program);
  expect_passes(program, {.strategy = sim::strategy::random, .stale_reads = true, .executions = 2000});
}

TEST(stealable, do_not_wait_for_who_made_them) {
  const auto program = [] {
    watched_runtime all(2);
    sim::atomic<bool> told{false};
    fiber makes = all->spawn(
        [&] {
          fiber made =
              spawn([&] { told.store(true, std::memory_order_release); }, {.worker = spawn_options::any_worker});
          while (!told.load(std::memory_order_acquire)) {
            platform::yield_thread();  // this keeps its worker
          }
          made.join();
        },
        {.worker = 0});
    // The other worker falls asleep at the same time.
    fiber passes = all->spawn([] {}, {.worker = 1});
    all.watch();
    makes.join();
    passes.join();
    all.done();
  };
  expect_passes(program);
  // The first one of a runtime, where a worker that expects no such fiber falls asleep without a fence.
  expect_passes(program, {.strategy = sim::strategy::random, .stale_reads = true, .executions = 2000});
  expect_passes(program,
                {.strategy = sim::strategy::random, .stale_reads = true, .symmetric_fences = true, .executions = 2000});
}

TEST(stealable, from_a_plain_thread) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> ran(0);
        all.watch();
        all->spawn([&] { ran += 1; }, {.worker = spawn_options::any_worker}).join();
        all.done();
        sim::check(ran == 1, "it has run once");
      },
      {.preemptions = 3});
}

TEST(fork2, both_halves_once) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> first(0), second(0);
        fiber forks = all->spawn(
            [&] {
              fork2([&] { first += 1; }, [&] { second += 1; });
              sim::check(first == 1 && second == 1, "each half has run once");
            },
            {.worker = 0, .migratable = true});
        all.watch();
        forks.join();
        all.done();
      },
      {.preemptions = 3});
}

TEST(fork2, has_its_second_half_taken_by_a_worker_that_sleeps) {
  const auto program = [] {
    watched_runtime all(2);
    sim::atomic<bool> told{false};
    fiber forks = all->spawn(
        [&] {
          fork2(
              [&] {
                while (!told.load(std::memory_order_acquire)) {
                  platform::yield_thread();  // this keeps its worker
                }
              },
              [&] { told.store(true, std::memory_order_release); });
        },
        {.worker = 0, .migratable = true});
    // The other worker falls asleep at the same time, without a fence.
    fiber passes = all->spawn([] {}, {.worker = 1});
    all.watch();
    forks.join();
    passes.join();
    all.done();
  };
  for (const bool symmetric : {false, true}) {
    expect_passes(
        program,
        {.strategy = sim::strategy::random, .stale_reads = true, .symmetric_fences = symmetric, .executions = 2000});
  }
}

TEST(fork2, within_each_other) {
  expect_passes(
      [] {
        watched_runtime all(2);
        sim::var<int> ran[3] = {0, 0, 0};
        fiber forks = all->spawn(
            [&] {
              fork2([&] { fork2([&] { ran[0] += 1; }, [&] { ran[1] += 1; }); }, [&] { ran[2] += 1; });
              sim::check(ran[0] == 1 && ran[1] == 1 && ran[2] == 1, "each has run once");
            },
            {.worker = 0, .migratable = true});
        all.watch();
        forks.join();
        all.done();
      },
      {.preemptions = 3});
}

// ---- priorities ---------------------------------------------------------------------------------------------------

TEST(priority, of_one_that_never_waits_leaves_others_their_turns) {
  expect_passes([] {
    bool other_ran = false;
    run_fibers({.workers = 1, .high_priority_turns = 2}, {[&] {
                                                            this_fiber::set_priority(fiber_priority::high);
                                                            while (!other_ran) {
                                                              this_fiber::yield();
                                                            }
                                                          },
                                                          [&] { other_ran = true; }});
  });
}

}  // namespace
