// The mutex workload, after that of sysbench: 64 units lock randomly chosen mutexes, and increment the number that each
// guards.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Measures a library; `Units` as in units_pirn.hpp.
template <typename Units>
void mutex_row() {
  struct alignas(64) place {
    typename Units::mutex guard;
    std::uint64_t locks = 0;
  };
  static constexpr std::uint64_t units = 64;
  static constexpr std::uint64_t places = 4096;
  std::vector<place> all(places);
  std::uint64_t before = 0;
  const auto run = [&](std::uint64_t n) {
    Units::together(units, [&](std::uint64_t i) {
      std::uint64_t random = i;
      for (std::uint64_t k = 0; k < n / units; ++k) {
        random = random * 6364136223846793005 + 1442695040888963407;
        place& chosen = all[random >> 52];
        chosen.guard.lock();
        ++chosen.locks;
        chosen.guard.unlock();
      }
    });
    std::uint64_t locks = 0;
    for (const place& each : all) {
      locks += each.locks;
    }
    check(locks - before == n, "no two units hold a mutex at once");
    before = locks;
  };
  // A large number, so that the creation of OS threads does not count.
  const double ns = ns_per_operation(run, units * 25'000, clock_for(input("WORKERS")));
  row("mutex", Units::name, param("workers", input("WORKERS")), "ns", ns, Units::note);
}

}  // namespace bench
