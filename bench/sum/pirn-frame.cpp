// A generator on a buffer in the consumer's frame.
#include "pirn/coro/generator.hpp"

#include "sum.hpp"

namespace {

using generator = pirn::generator<std::uint64_t, pirn::frame<2048>>;

// Each producer has its own copy of the loop: sum.hpp says why.
[[gnu::always_inline]] inline std::uint64_t total(generator&& elements) {
  std::uint64_t sum = 0;
  for (const std::uint64_t element : elements) {
    bench::add(sum, element);
  }
  return sum;
}

}  // namespace

int main() {
  bench::sum_rows(
      "pirn-frame",
      [](std::uint64_t n) {
        return total([n](auto& yield) {
          for (std::uint64_t i = n; i != 0; --i) {
            yield(i);
          }
        });
      },
      [](std::uint64_t n) {
        return total([n](auto& yield) {
          std::uint64_t i = n;
          while (i != 0) {
            yield(i--);
          }
        });
      });
}
