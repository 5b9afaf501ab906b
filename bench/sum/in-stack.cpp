// No library: the paper's form of a generator, in the consumer's stack. Unsafe: see ../in_stack.hpp.
#include "../in_stack.hpp"

#include "sum.hpp"

namespace {

template <typename Body>
[[gnu::noinline]] std::uint64_t total(Body body) {
  IN_STACK_ADDRESS_BY_FP();
  std::uint64_t sum = 0;
  {
    bench::in_stack::generator<Body> elements(body);
    for (; elements; elements.resume()) {
      bench::add(sum, *elements);
    }
  }
  return sum;
}

}  // namespace

int main() {
  bench::sum_rows(
      "in-stack",
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
      },
      "no library: the paper's form, which is not safe");
}
