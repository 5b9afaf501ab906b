// The threads workload, after that of sysbench: 64 units take 8 mutexes in turn, and yield while they hold one.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Measures a library; `Units` as in units_pirn.hpp.
template <typename Units>
void threads_row() {
  struct alignas(64) place {
    typename Units::mutex guard;
    std::uint64_t rounds = 0;
  };
  static constexpr std::uint64_t units = 64;
  std::vector<place> all(8);
  std::uint64_t before = 0;
  const auto run = [&](std::uint64_t n) {
    Units::together(units, [&](std::uint64_t /*i*/) {
      for (std::uint64_t k = 0; k < n / units; ++k) {
        place& next = all[k % all.size()];
        next.guard.lock();
        const std::uint64_t rounds = next.rounds;
        Units::yield();
        next.rounds = rounds + 1;
        next.guard.unlock();
      }
    });
    std::uint64_t rounds = 0;
    for (const place& each : all) {
      rounds += each.rounds;
    }
    check(rounds - before == n, "no two units hold a mutex at once");
    before = rounds;
  };
  const double ns = ns_per_operation(run, units * 200, clock_for(input("WORKERS")));
  row("threads", Units::name, param("workers", input("WORKERS")), "ns", ns, Units::note);
}

}  // namespace bench
