// Shared by the fork-join workloads.
#pragma once

#include <string>

#include "harness.hpp"

namespace bench {

/// Prints the cost of one operation of `work`, which does `count` of them, for a library as in forks_pirn.hpp. `work`
/// checks its result.
template <typename Forks, typename Work>
void fork_row(const char* workload, std::uint64_t count, Work work) {
  const auto run = [&](std::uint64_t n) {
    for (std::uint64_t done = 0; done < n; done += count) {
      work();
    }
  };
  const std::uint64_t workers = input("WORKERS");
  const double ns = ns_per_operation(run, count, clock_for(workers));
  row(workload, Forks::name, param("workers", workers), "ns", ns, Forks::note);
}

}  // namespace bench
