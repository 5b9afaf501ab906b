// The common code of both programs of the workload: fibers that yield at the bottom of a chain of calls. Each call
// keeps values until the call below it returns. DEPTH is the number of functions above the yield, LIVE the number of
// values that each keeps.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "../harness.hpp"
#include "../tell_of_fiber.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

constexpr int deepest = 8;
constexpr int max_live = 5;

constexpr std::uint64_t kept_value(std::uint64_t x, std::uint64_t which) { return x + 3 * which; }

template <int depth, int live>
[[gnu::noinline]] std::uint64_t level(std::uint64_t x) {
  std::array<std::uint64_t, live> kept;
  for (std::uint64_t i = 0; i < live; ++i) {
    kept[i] = bench::opaque(kept_value(x, i));  // else it would be computed again after the call
  }
  if constexpr (depth == 1) {
    pirn::this_fiber::yield();
    x = 1;
  } else {
    x = bench::opaque(level<depth - 1, live>(x + 1));  // prevents a tail call
  }
  std::uint64_t mixed = 0;
  for (const std::uint64_t value : kept) {
    mixed ^= value;
  }
  return x + mixed;
}

/// Returns the result of `level`, computed without the yield.
std::uint64_t expected(int depth, int live, std::uint64_t x) {
  const std::uint64_t given = x;
  x = depth == 1 ? 1 : expected(depth - 1, live, x + 1);
  std::uint64_t mixed = 0;
  for (int i = 0; i < live; ++i) {
    mixed ^= kept_value(given, static_cast<std::uint64_t>(i));
  }
  return x + mixed;
}

template <int depth, int live>
void run(std::uint64_t n) {
  const std::uint64_t fibers = bench::input("FIBERS");
  std::uint64_t right = 0;
  std::vector<pirn::fiber> all;
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.push_back(pirn::spawn([each = n / fibers, &right] {
      bench::tell_of_fiber();
      std::uint64_t x = 1;
      for (std::uint64_t k = 0; k < each; ++k) {
        x = level<depth, live>(x);
      }
      right += static_cast<std::uint64_t>(x != 0 && level<depth, live>(x) == expected(depth, live, x));
    }));
  }
  for (pirn::fiber& fiber : all) {
    fiber.join();
  }
  bench::check(right == fibers, "every level has kept its values");
}

using one_run = void (*)(std::uint64_t);

template <int... which>
constexpr std::array<one_run, sizeof...(which)> all_runs(std::integer_sequence<int, which...> /*which*/) {
  return {&run<which / (max_live + 1) + 1, which % (max_live + 1)>...};
}

void spread_workload(const char* impl) {
  const std::uint64_t depth = bench::input("DEPTH");
  const std::uint64_t live = bench::input("LIVE");
  bench::check(depth >= 1 && depth <= deepest && live <= max_live, "DEPTH is 1 to 8 and LIVE 0 to 5");
  const auto runs = all_runs(std::make_integer_sequence<int, deepest*(max_live + 1)>());
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run([&] {
    const std::string params = "{\"depth\":" + std::to_string(depth) + ",\"live\":" + std::to_string(live) + "}";
    bench::row("spread", impl, params, "ns",
               bench::ns_per_operation(runs[(depth - 1) * (max_live + 1) + live], bench::input("FIBERS")));
  });
}

}  // namespace
