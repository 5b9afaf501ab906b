// The generator's body and the consumer in one loop.
#include "pirn/coro/generator.hpp"

#include "sum.hpp"

namespace {

template <typename Body>
std::uint64_t total(Body body) {
  std::uint64_t sum = 0;
  pirn::for_each<std::uint64_t>(body, [&](std::uint64_t element) { bench::add(sum, element); });
  return sum;
}

}  // namespace

int main() {
  bench::sum_rows(
      "pirn-foreach",
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
