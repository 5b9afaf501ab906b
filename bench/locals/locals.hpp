// The locals workload: one of several variables is found and one is added to it, in a function that knows only the
// variable.
#pragma once

#include <cstddef>
#include <vector>

#include "../harness.hpp"

namespace bench {

/// Measures `add(i)`, which adds one to variable i and is not inlined. `value(i)` returns what it is.
template <typename Add, typename Value>
void locals_row(const char* impl, Add&& add, Value&& value, const char* note = nullptr) {
  const std::uint64_t variables = input("VARIABLES");
  std::uint64_t added = 0;
  const double ns = ns_per_operation(
      [&](std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; i += variables) {
          for (std::uint64_t each = 0; each < variables; ++each) {
            add(each);
          }
        }
        added += n / variables;
        for (std::uint64_t each = 0; each < variables; ++each) {
          check(value(each) == added, "each variable has a value of its own");
        }
      },
      variables);
  row("locals", impl, param("variables", variables), "ns", ns, note);
}

}  // namespace bench
