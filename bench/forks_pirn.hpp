// pirn's fork-join, for workloads that are written once for all libraries of C++. Each library has a header like this
// one.
#pragma once

#include "harness.hpp"
#include "pirn/fiber/fork_join.hpp"

namespace bench {

struct forks {
  static constexpr const char* name = "pirn";
  static constexpr const char* note = "fork2";

  /// Runs `body`, which may fork, on WORKERS workers.
  template <typename Body>
  static void run(Body body) {
    pirn::runtime runtime({.workers = static_cast<unsigned>(input("WORKERS"))});
    runtime.spawn(body, {.migratable = true}).join();
  }

  /// Calls both functions, perhaps at the same time, and returns both results.
  template <typename F, typename G>
  static PIRN_ALWAYS_INLINE auto both(F f, G g) {
    return pirn::fork2(f, g);
  }
};

}  // namespace bench
