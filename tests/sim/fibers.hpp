// Small programs of a few fibers, for explorations that look at one thing.
#pragma once

#include <gtest/gtest.h>
#include <pirn/fiber/runtime.hpp>
#include <pirn/sim/explore.hpp>
#include <pirn/sim/thread.hpp>
#include <pirn/sim/var.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <source_location>
#include <vector>

namespace pirn_test {

/// Runs each of `bodies` as a fiber, the first on worker 0, the next on the next, and joins them. The exploration may
/// interrupt everything except the beginning and the end of the runtime.
inline void run_fibers(const pirn::runtime_options& options, const std::vector<std::function<void()>>& bodies,
                       bool migratable = false) {
  std::optional<pirn::sim::one_schedule> apart(std::in_place);
  pirn::runtime runtime{options};
  std::vector<pirn::fiber> fibers;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    fibers.push_back(
        runtime.spawn(bodies[i], {.worker = static_cast<int>(i % options.workers), .migratable = migratable}));
  }
  apart.reset();
  for (auto& each : fibers) {
    each.join();
  }
  apart.emplace();
}
inline void run_fibers(unsigned workers, const std::vector<std::function<void()>>& bodies, bool migratable = false) {
  run_fibers(pirn::runtime_options{.workers = workers}, bodies, migratable);
}

/// Runs `waits` as a fiber of worker 0 of two, and `other`, which gets its handle, as one of worker 1.
inline void run_beside(pirn::engine_kind engine, const std::function<void()>& waits,
                       const std::function<void(pirn::fiber&)>& other, bool migratable = false) {
  std::optional<pirn::sim::one_schedule> apart(std::in_place);
  pirn::runtime both({.workers = 2, .engine = engine});
  pirn::fiber waiter = both.spawn(waits, {.worker = 0, .migratable = migratable});
  pirn::fiber disturber = both.spawn([&] { other(waiter); }, {.worker = 1});
  apart.reset();
  disturber.join();
  waiter.join();
  apart.emplace();
}

/// Runs two threads that each add one by a load and a store. The check at `where` fails if one thread comes between the
/// load and the store of the other.
inline void lose_an_update(const std::source_location& where = std::source_location::current()) {
  pirn::sim::atomic<int> count(0);
  {
    const auto add = [&] { count.store(count.load() + 1); };
    const pirn::sim::thread a(add);
    const pirn::sim::thread b(add);
  }
  pirn::sim::check(count.load() == 2, "an update is lost", where);
}

/// Explores a program. Fails the test with the whole report if a failure is found. Prints the cost.
inline pirn::sim::result explore_and_print(const std::function<void()>& program, const pirn::sim::options& options) {
  const pirn::sim::result found = pirn::sim::explore(program, options);
  EXPECT_TRUE(found) << found.text();
  std::printf("  %llu executions, %.1f million steps, %.2f s\n", static_cast<unsigned long long>(found.executions),
              static_cast<double>(found.steps) / 1e6, found.seconds);
  return found;
}

/// Explores more than is affordable every day: a million schedules of either random kind, however long they take. Then,
/// for at most `exhaustive` each, one preemption more, with and without the memory model.
inline void soak(const std::function<void()>& program, pirn::sim::options options, std::chrono::seconds exhaustive) {
  using pirn::sim::strategy;
  options.preemptions = 3;
  for (const strategy each : {strategy::random, strategy::pct}) {
    options.strategy = each;
    options.stale_reads = true;
    options.executions = 1'000'000;
    options.budget = std::chrono::hours(2);
    const pirn::sim::result found = explore_and_print(program, options);
    EXPECT_TRUE(!found || found.executions == options.executions) << "out of time";
  }
  for (const bool stale : {false, true}) {
    options.strategy = strategy::exhaustive;
    options.stale_reads = stale;
    options.executions = 0;
    options.budget = exhaustive;
    const pirn::sim::result found = explore_and_print(program, options);
    std::printf("  preemption bound 3, %s: %s\n", stale ? "stale reads" : "sequentially consistent",
                found.complete ? "complete" : "not all of it");
  }
}

/// Explores the whole program with `options`; with PIRN_SIM_SOAK also as `soak` does, for that number of seconds. With
/// PIRN_SIM_SECONDS, in an emulator, only what takes that number of seconds.
inline void expect_passes(const std::function<void()>& program, pirn::sim::options options = {}) {
  const char* const most = std::getenv("PIRN_SIM_SECONDS");
  options.budget = most != nullptr ? std::chrono::seconds(std::atol(most)) : std::chrono::minutes(2);
  const pirn::sim::result found = explore_and_print(program, options);
  EXPECT_TRUE(options.strategy != pirn::sim::strategy::exhaustive || found.complete || !found || most != nullptr)
      << "out of time: " << found.text();
  if (const char* const seconds = std::getenv("PIRN_SIM_SOAK"); seconds != nullptr && found) {
    soak(program, options, std::chrono::seconds(std::atol(seconds)));
  }
}

}  // namespace pirn_test
