// The coro-spawn workload: the whole life of a coroutine without a scheduler, on reused memory.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Measures `once()`, which creates a coroutine, runs it to its end and destroys it. The body adds one to `ran`.
template <typename Once>
void coro_spawn_row(const char* impl, const std::uint64_t& ran, Once once, const char* note = nullptr) {
  const double ns = ns_per_operation([&](std::uint64_t n) {
    const std::uint64_t before = ran;
    for (std::uint64_t i = 0; i < n; ++i) {
      once();
    }
    check(ran - before == n, "every coroutine runs once");
  });
  row("coro-spawn", impl, "{}", "ns", ns, note);
}

}  // namespace bench
