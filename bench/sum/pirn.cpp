// A generator on a pooled stack.
#include "pirn/coro/generator.hpp"

#include "sum.hpp"

namespace {

using generator = pirn::generator<std::uint64_t>;

[[gnu::noinline]] generator produce_for(std::uint64_t n) {
  return [n](auto& yield) {
    for (std::uint64_t i = n; i != 0; --i) {
      yield(i);
    }
  };
}

[[gnu::noinline]] generator produce_while(std::uint64_t n) {
  return [n](auto& yield) {
    std::uint64_t i = n;
    while (i != 0) {
      yield(i--);
    }
  };
}

// Each producer has its own copy of the loop: sum.hpp says why.
[[gnu::always_inline]] inline std::uint64_t total(generator elements) {
  std::uint64_t sum = 0;
  for (const std::uint64_t element : elements) {
    bench::add(sum, element);
  }
  return sum;
}

}  // namespace

int main() {
  bench::sum_rows(
      "pirn", [](std::uint64_t n) { return total(produce_for(n)); },
      [](std::uint64_t n) { return total(produce_while(n)); }, "the producer is not inlined");
}
