// std::generator, where the standard library has it.
#include <generator>

#include "sum.hpp"

namespace {

[[gnu::noinline]] std::generator<std::uint64_t> produce_for(std::uint64_t n) {
  for (std::uint64_t i = n; i != 0; --i) {
    co_yield i;
  }
}

[[gnu::noinline]] std::generator<std::uint64_t> produce_while(std::uint64_t n) {
  std::uint64_t i = n;
  while (i != 0) {
    co_yield i--;
  }
}

[[gnu::always_inline]] inline std::uint64_t total(std::generator<std::uint64_t> elements) {
  std::uint64_t sum = 0;
  for (const std::uint64_t element : elements) {
    bench::add(sum, element);
  }
  return sum;
}

}  // namespace

int main() {
  bench::sum_rows(
      "std-generator", [](std::uint64_t n) { return total(produce_for(n)); },
      [](std::uint64_t n) { return total(produce_while(n)); });
}
