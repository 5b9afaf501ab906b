// Two threads on two cores that hand each other a number by plain loads and stores, each with a line of cache that only
// it writes.
#include <sched.h>

#include <atomic>
#include <thread>

#include "../harness.hpp"

namespace {

/// Relaxed, so that the processor sees loads and stores like any others.
struct alignas(128) line {
  std::atomic<std::uint64_t> number = 0;
};

/// Keeps the calling thread on one of the CPUs that the process may use. On the CPU of the other thread it would spin
/// for as long as the kernel lets it, before that one can answer.
void stay_on(int which, const cpu_set_t& all) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && which-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      bench::check(sched_setaffinity(0, sizeof one, &one) == 0, "a thread stays on a CPU");
      return;
    }
  }
  bench::check(false, "there are two CPUs");
}

void run(std::uint64_t messages) {
  const std::uint64_t rounds = messages / 2;
  line there;
  line back;
  static const cpu_set_t all = [] {
    cpu_set_t mine;
    bench::check(sched_getaffinity(0, sizeof mine, &mine) == 0, "the CPUs are known");
    return mine;
  }();
  stay_on(0, all);
  std::thread other([&] {
    stay_on(1, all);
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
