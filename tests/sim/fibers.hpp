// Small programs of a few fibers, for explorations that look at one thing.
#pragma once

#include <gtest/gtest.h>
#include <pirn/fiber/runtime.hpp>
#include <pirn/sim/explore.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <vector>

namespace pirn_test {

/// Runs each of `bodies` as a fiber, the first on worker 0, the next on the next, and joins them. Everything may be
/// interrupted but the beginning and the end of the runtime.
inline void run_fibers(const pirn::runtime_options& how, const std::vector<std::function<void()>>& bodies,
                       bool migratable = false) {
  std::optional<pirn::sim::one_schedule> apart(std::in_place);
  pirn::runtime runtime{how};
  std::vector<pirn::fiber> fibers;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    fibers.push_back(runtime.spawn(bodies[i], {.worker = static_cast<int>(i % how.workers), .migratable = migratable}));
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

/// Fails the test with the whole report unless nothing is found. Prints what it took.
inline pirn::sim::result explore_and_print(const std::function<void()>& program, const pirn::sim::options& how) {
  const pirn::sim::result found = pirn::sim::explore(program, how);
  EXPECT_TRUE(found) << found.text();
  std::printf("  %llu executions, %.1f million steps, %.2f s\n", static_cast<unsigned long long>(found.executions),
              static_cast<double>(found.steps) / 1e6, found.seconds);
  return found;
}

/// Explores the whole program as `how` says. With PIRN_SIM_SOAK, for so many seconds, also what takes too long for
/// every day: one preemption more, the memory model, and a million schedules of either random kind.
inline void expect_passes(const std::function<void()>& program, pirn::sim::options how = {}) {
  using pirn::sim::strategy;
  how.budget = std::chrono::minutes(2);
  const pirn::sim::result found = explore_and_print(program, how);
  EXPECT_TRUE(how.how != strategy::exhaustive || found.complete || !found) << "out of time: " << found.text();
  if (const char* const seconds = std::getenv("PIRN_SIM_SOAK"); seconds != nullptr && found) {
    how.budget = std::chrono::milliseconds(1000L * std::atol(seconds) / 4);
    how.stale_reads = true;
    how.executions = 0;
    how.preemptions = 3;
    how.how = strategy::exhaustive;
    explore_and_print(program, how);
    how.executions = 1'000'000;
    for (const strategy each : {strategy::random, strategy::pct}) {
      how.how = each;
      explore_and_print(program, how);
    }
    how.stale_reads = false;
    how.executions = 0;
    how.how = strategy::exhaustive;
    explore_and_print(program, how);
  }
}

}  // namespace pirn_test
