// The frames workload: chains of coroutines, each of which awaits the next, that end without a wait. The last one
// returns 1 and each of the others one more than the one that it awaits.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Never inlined, so that each coroutine has a frame: a compiler may put that of a visible one into its awaiter's.
template <typename Task>
[[gnu::noinline]] Task chain(std::uint64_t depth, std::uint64_t sum) {
  if (depth == 1) {
    co_return sum + 1;
  }
  co_return co_await chain<Task>(depth - 1, sum) + 1;
}

template <typename Task>
[[gnu::noinline]] Task chains(std::uint64_t count, std::uint64_t depth) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    sum = co_await chain<Task>(depth, sum);
  }
  co_return sum;
}

/// Measures a library: `result_of(task)` runs a Task to its end.
template <typename Task, typename ResultOf>
void frames_rows(const char* impl, ResultOf result_of, const char* note) {
  for (const std::uint64_t depth : {1, 4, 16}) {
    const auto run = [&](std::uint64_t n) {
      check(result_of(chains<Task>(n / depth, opaque(depth))) == n, "every coroutine of a chain has counted itself");
    };
    row("frames", impl, param("depth", depth), "ns", ns_per_operation(run, depth), note);
  }
}

}  // namespace bench
