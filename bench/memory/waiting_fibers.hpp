// The memory workload for pirn's fibers, each suspended two calls deep in a wait for one event. All wait, then all
// continue.
#pragma once

#include "memory.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/event.hpp"

namespace bench::memory {

struct waiting_fibers {
  pirn::event gate;
  std::uint64_t waiting = 0;
  std::uint64_t ended = 0;

  __attribute__((noinline)) void wait_below(std::uint64_t step) noexcept {
    waiting += step;
    static_cast<void>(gate.wait());
    ended += step;
  }
  __attribute__((noinline)) void wait_deeper(std::uint64_t step) noexcept {
    wait_below(step);
    asm volatile("" : : : "memory");  // prevents a tail call
  }

  /// Measures fibers that `spawn(body)` makes, which hold about `expected` bytes each.
  template <typename Spawn>
  static void measure(Spawn spawn, const char* impl, std::uint64_t expected, const char* note) {
    const std::uint64_t count = units();
    need_memory(count * expected);
    pirn::runtime runtime({.workers = 1});
    runtime.run([&] {
      waiting_fibers all;
      std::vector<pirn::fiber> fibers;
      const meter meter;
      fibers.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        fibers.push_back(spawn([&all]() noexcept { all.wait_deeper(1); }));
      }
      while (all.waiting < count) {
        pirn::this_fiber::yield();
      }
      meter.row(impl, "fresh", count, note);
      all.gate.set();
      for (pirn::fiber& each : fibers) {
        each.join();
      }
      check(all.ended == count, "every unit runs");
    });
  }
};

}  // namespace bench::memory
