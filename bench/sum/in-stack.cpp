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
  bench::sum_rows_of_producers(
      "in-stack", [](auto produce) { return total(produce); }, "no library: the paper's form, which is not safe");
}
