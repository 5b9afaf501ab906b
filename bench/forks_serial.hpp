// Two calls, one after the other; as forks_pirn.hpp.
#pragma once

#include <utility>

#include "harness.hpp"

namespace bench {

struct forks {
  static constexpr const char* name = "serial";
  static constexpr const char* note = "plain calls";

  template <typename Body>
  static void run(Body body) {
    body();
  }

  template <typename F, typename G>
  static auto both(F f, G g) {
    auto first = f();
    auto second = g();
    return std::pair(first, second);
  }
};

}  // namespace bench
