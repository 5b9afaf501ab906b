// A C++20 coroutine that is not inlined into its consumer.
#include "../generator.hpp"
#include "sum.hpp"

namespace {

[[gnu::noinline]] bench::generator<std::uint64_t> produce_for(std::uint64_t n) {
  for (; n != 0; --n) {
    co_yield n;
  }
}

[[gnu::noinline]] bench::generator<std::uint64_t> produce_while(std::uint64_t n) {
  while (n != 0) {
    co_yield n--;
  }
}

// Each producer has its own copy of the loop: sum.hpp says why.
[[gnu::always_inline]] inline std::uint64_t total(bench::generator<std::uint64_t> elements) {
  std::uint64_t sum = 0;
  while (elements.next()) {
    bench::add(sum, elements.value());
  }
  return sum;
}

}  // namespace

int main() {
  bench::sum_rows(
      "cpp20", [](std::uint64_t n) { return total(produce_for(n)); },
      [](std::uint64_t n) { return total(produce_while(n)); }, "the producer is not inlined");
}
