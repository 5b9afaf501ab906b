// pirn's fibers on stacks of 2 KiB without a guard, which are checked at each suspension. All wait in one queue, two
// calls deep, then all continue.
#include "memory.hpp"
#include "pirn/fiber/expert/small.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/event.hpp"

namespace {

struct shared {
  pirn::event gate;
  std::uint64_t waiting = 0;
  std::uint64_t ended = 0;
};

__attribute__((noinline)) void wait_below(shared& all, std::uint64_t step) {
  all.waiting += step;
  static_cast<void>(all.gate.wait());
  all.ended += step;
}

__attribute__((noinline)) void wait_deeper(shared& all, std::uint64_t step) {
  wait_below(all, step);
  asm volatile("" : : : "memory");  // prevents a tail call
}

}  // namespace

int main() {
  const std::uint64_t units = bench::memory::units();
  bench::need_memory(units * 2700);
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] {
    shared all;
    std::vector<pirn::fiber> fibers;
    const bench::memory::meter meter;
    fibers.reserve(units);
    for (std::uint64_t i = 0; i < units; ++i) {
      fibers.push_back(pirn::spawn_small([&all] { wait_deeper(all, 1); }));
    }
    while (all.waiting < units) {
      pirn::this_fiber::yield();
    }
    meter.row("pirn-small", "fresh", units, "stacks of 2 KiB, checked at each suspension");
    all.gate.set();
    for (pirn::fiber& each : fibers) {
      each.join();
    }
    bench::check(all.ended == units, "every unit runs");
  });
}
