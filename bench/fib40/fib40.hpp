// The fib40 workload: the Fibonacci numbers by their recursive definition, in which each addition forks.
#pragma once

#include "../forks.hpp"

namespace bench {

template <typename Forks>
std::uint64_t fib(std::uint64_t n) {
  if (n < 2) {
    return n;
  }
  const auto [a, b] = Forks::both([n] { return fib<Forks>(n - 1); }, [n] { return fib<Forks>(n - 2); });
  return a + b;
}

inline std::uint64_t fib_by_sums(std::uint64_t n) {
  std::uint64_t a = 0;
  std::uint64_t b = 1;
  for (; n > 0; --n) {
    a = std::exchange(b, a + b);
  }
  return a;
}

/// Computes fib(FIB) once, since that takes long enough.
template <typename Forks>
void fib_row() {
  check(fib<Forks>(opaque<std::uint64_t>(20)) == 6765, "fib(20)");
  const std::uint64_t n = opaque(input("FIB"));
  const std::uint64_t workers = input("WORKERS");
  double (*const now)() = clock_for(workers);
  const double start = now();
  const std::uint64_t result = fib<Forks>(n);
  const double took = now() - start;
  check(result == fib_by_sums(n), "the Fibonacci number");
  // Each addition has one call that forks.
  row("fib40", Forks::name, param("workers", workers), "ns", took / static_cast<double>(fib_by_sums(n + 1) - 1),
      Forks::note);
}

}  // namespace bench
