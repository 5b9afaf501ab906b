// OpenMP's tasks; as forks_pirn.hpp.
#pragma once

#include <utility>

#include "harness.hpp"

namespace bench {

struct forks {
  static constexpr const char* name = "openmp";
  static constexpr const char* note = "a task and taskwait, the second call by the caller";

  template <typename Body>
  static void run(Body body) {
    const auto workers = static_cast<int>(input("WORKERS"));
#pragma omp parallel num_threads(workers)
#pragma omp single
    body();
  }

  template <typename F, typename G>
  static auto both(F f, G g) {
    decltype(f()) first{};
#pragma omp task shared(first, f)
    first = f();
    auto second = g();
#pragma omp taskwait
    return std::pair(first, second);
  }
};

}  // namespace bench
