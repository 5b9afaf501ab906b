// The fib workload: Fibonacci numbers by their recursive definition, each first call in a separate unit.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Measures a library; `Units` as in units_pirn.hpp.
template <typename Units>
void fib_row() {
  static constexpr unsigned number = 14;
  static constexpr std::uint64_t value = 377;
  static constexpr std::uint64_t units = 609;  // needed units: one less than the next Fibonacci number
  struct recursion {
    static std::uint64_t of(unsigned n) {
      if (n < 2) {
        return n;
      }
      std::uint64_t first = 0;
      std::uint64_t second = 0;
      Units::both([&first, n] { first = of(n - 1); }, [&second, n] { second = of(n - 2); });
      return first + second;
    }
  };
  const auto run = [&](std::uint64_t n) {
    for (std::uint64_t done = 0; done < n; done += units) {
      check(recursion::of(number) == value, "the number is the right one");
    }
  };
  const double ns = ns_per_operation(run, units, clock_for(input("WORKERS")));
  row("fib", Units::name, param("workers", input("WORKERS")), "ns", ns, "one unit for each call but the last of two");
}

}  // namespace bench
