// Variables that are found without the yield object at hand.
#pragma once

#include <deque>

#include "locals.hpp"

namespace bench {

/// So many variables as the workload says, each with a `get()`.
template <typename Variable>
class found_variables {
 public:
  found_variables() {
    for (std::uint64_t i = 0; i < input("VARIABLES"); ++i) {
      all.emplace_back();
    }
  }
  /// Measures in the body that it is called in.
  void measure(const char* impl, const char* note) const {
    locals_row(impl, add, [](std::uint64_t which) { return all[which].get(); }, note);
  }

 private:
  static inline std::deque<Variable> all;
  [[gnu::noinline]] static void add(std::uint64_t which) { ++all[which].get(); }
};

}  // namespace bench
