// oneTBB; as forks_pirn.hpp.
#pragma once

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <utility>

#include "harness.hpp"

namespace bench {

struct forks {
  static constexpr const char* name = "tbb";
  static constexpr const char* note = "task_group, the second call by the caller";

  template <typename Body>
  static void run(Body body) {
    const auto workers = static_cast<int>(input("WORKERS"));
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(workers));
    tbb::task_arena arena(workers);
    arena.execute(body);
  }

  template <typename F, typename G>
  static auto both(F f, G g) {
    decltype(f()) first{};
    tbb::task_group group;
    group.run([&] { first = f(); });
    auto second = g();
    group.wait();
    return std::pair(first, second);
  }
};

}  // namespace bench
