// pirn's fibers on stacks of the size that the compiler plugin proves, each suspended two calls deep in a wait for one
// event. All wait, then all continue.
#include "memory.hpp"
#include "pirn/fiber/expert/bounded.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/event.hpp"

namespace {

struct shared {
  pirn::event gate;
  std::uint64_t waiting = 0;
  std::uint64_t ended = 0;
};

__attribute__((noinline)) void wait_below(shared& all, std::uint64_t step) noexcept {
  all.waiting += step;
  static_cast<void>(all.gate.wait());
  all.ended += step;
}

__attribute__((noinline)) void wait_deeper(shared& all, std::uint64_t step) noexcept {
  wait_below(all, step);
  asm volatile("" : : : "memory");  // prevents a tail call
}

}  // namespace

int main() {
  const std::uint64_t units = bench::memory::units();
  bench::need_memory(units * 750);
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] {
    shared all;
    std::vector<pirn::fiber> fibers;
    const bench::memory::meter meter;
    fibers.reserve(units);
    for (std::uint64_t i = 0; i < units; ++i) {
      fibers.push_back(pirn::spawn_bounded([&all]() noexcept { wait_deeper(all, 1); }));
    }
    while (all.waiting < units) {
      pirn::this_fiber::yield();
    }
    meter.row("pirn-bounded", "fresh", units, "bounded stacks, proven by the compiler plugin");
    all.gate.set();
    for (pirn::fiber& each : fibers) {
      each.join();
    }
    bench::check(all.ended == units, "every unit runs");
  });
}
