// The sum workload: a producer counts down from n to 1, a consumer adds up the elements.
//
// All producers have one of two bodies, which compilers treat differently:
//   for:    for (; n != 0; --n) yield n;
//   while:  while (n != 0) yield n--;
//
// Each producer has its own consumer, like a loop in a real program. A shared consumer would end in an indirect jump
// that has had two targets, which Zen 4 predicts four cycles later than one that has had one.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Adds an element, as the consumer does. The empty asm keeps the plain loop, and all code inlined into one, from
/// becoming a formula or vectors: all pay for each element.
inline void add(std::uint64_t& sum, std::uint64_t element) {
  sum += element;
  asm volatile("" : "+r"(sum));
}

template <typename Sum>
void sum_row(const char* impl, const char* form, Sum sum, const char* note = nullptr) {
  const double ns =
      ns_per_operation([&](std::uint64_t n) { check(sum(n) == n * (n + 1) / 2, "every element arrives"); });
  row("sum", impl, std::string(R"({"form":")") + form + "\"}", "ns", ns, note);
}

/// Measures two functions that return the sum of n down to 1, the first with the `for` producer, the second with the
/// `while` producer.
template <typename For, typename While>
void sum_rows(const char* impl, For sum_for, While sum_while, const char* note = nullptr) {
  sum_row(impl, "for", sum_for, note);
  sum_row(impl, "while", sum_while, note);
}

/// The two producers, for programs whose producer is called with a yield object.
struct produce_for {
  std::uint64_t n;
  void operator()(auto& yield) const {
    for (std::uint64_t i = n; i != 0; --i) {
      yield(i);
    }
  }
};
struct produce_while {
  std::uint64_t n;
  void operator()(auto& yield) const {
    std::uint64_t i = n;
    while (i != 0) {
      yield(i--);
    }
  }
};
/// As `sum_rows`, for a `total(producer)` that is compiled anew for each of these two.
template <typename Total>
void sum_rows_of_producers(const char* impl, Total total, const char* note = nullptr) {
  sum_rows(
      impl, [total](std::uint64_t n) { return total(produce_for{n}); },
      [total](std::uint64_t n) { return total(produce_while{n}); }, note);
}

}  // namespace bench
