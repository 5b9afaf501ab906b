// A generator on as many bytes of the consumer's frame as the compiler plugin finds that its body needs.
#include "pirn/coro/generator.hpp"

#include "sum.hpp"

namespace {

using generator = pirn::generator<std::uint64_t, pirn::frame<>>;

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
      "pirn-frame-plugin",
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
