// Two threads on two cores that hand each other a number by plain loads and stores, each with a line of cache that only
// it writes.
#include <atomic>
#include <thread>

#include "../harness.hpp"

namespace {

/// Relaxed, so that the processor sees loads and stores like any others.
struct alignas(128) line {
  std::atomic<std::uint64_t> number = 0;
};

void run(std::uint64_t messages) {
  const std::uint64_t rounds = messages / 2;
  line there;
  line back;
  std::thread other([&] {
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      while (there.number.load(std::memory_order_relaxed) != i) {
      }
      back.number.store(i, std::memory_order_relaxed);
    }
  });
  std::uint64_t i = 1;
  for (; i <= rounds; ++i) {
    there.number.store(i, std::memory_order_relaxed);
    while (back.number.load(std::memory_order_relaxed) != i) {
    }
  }
  other.join();
  bench::check(i == rounds + 1, "every number comes back");
}

}  // namespace

int main() {
  bench::row("core-to-core", "bare", "{}", "ns", bench::ns_per_operation(run, 2, bench::wall_ns),
             "two threads on two cores, plain loads and stores");
}
