// Probabilistic concurrency testing, and the bound that it reports.
#include <gtest/gtest.h>
#include <pirn/sim/explore.hpp>

#include <cmath>
#include <functional>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"

using namespace pirn;

namespace {

TEST(pct, says_how_much_it_may_have_missed) {
  const auto two_fibers = [] { pirn_test::run_fibers(2, {[] {}, [] {}}); };
  const sim::result found = sim::explore(two_fibers, {.strategy = sim::strategy::pct, .depth = 2, .executions = 500});
  EXPECT_TRUE(found) << found.text();
  EXPECT_EQ(found.executions, 500U);
  EXPECT_LT(found.missed, 1);
  EXPECT_GT(found.missed, 0);
  const auto two_words = [] {
    sim::atomic<int> word(0);
    const sim::thread other([&] { static_cast<void>(word.load(std::memory_order_relaxed)); });
    word = 2;
  };
  const auto missed = [](const std::function<void()>& program, sim::options options) {
    options.strategy = sim::strategy::pct;
    options.executions = 50;
    return sim::explore(program, options).missed;
  };
  EXPECT_LT(missed(two_words, {.depth = 1}), 1e-6);
  EXPECT_EQ(missed(two_words, {.depth = 0}), missed(two_words, {.depth = 1}));
  EXPECT_GT(missed(two_words, {.depth = 1, .stale_reads = true}), missed(two_words, {.depth = 1}));
  EXPECT_LT(missed(two_fibers, {.depth = 1}), 1);
  EXPECT_EQ(missed(two_fibers, {.depth = 1, .faults = {.spurious = true}}), 1);
}

TEST(pct, keeps_what_it_says) {
  constexpr int stores = 5;
  int seen[stores + 1] = {};
  const sim::result found = sim::explore(
      [&] {
        sim::atomic<int> word(0);
        sim::thread other([&] {
          for (int i = 1; i <= stores; ++i) {
            word = i;
          }
        });
        const int value = word.load();
        other.join();
        ++seen[value];
      },
      {.strategy = sim::strategy::pct, .depth = 2, .executions = 5000});
  const double chance = 1 - std::pow(found.missed, 1.0 / static_cast<double>(found.executions));
  EXPECT_GT(chance, 0.02);
  for (const int each : seen) {
    EXPECT_GT(each, 0.8 * chance * static_cast<double>(found.executions));
  }
}

}  // namespace
