// Boost.Context's fiber as a generator, on pooled stacks: the element is passed in a variable that both sides know.
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include "sum.hpp"

namespace {

namespace ctx = boost::context;

/// Resumes a producer until it has ended. Its body gets a function that yields.
template <typename Body>
std::uint64_t total(ctx::pooled_fixedsize_stack& stacks, Body body) {
  std::uint64_t element = 0;
  bool ended = false;
  ctx::fiber producer(std::allocator_arg, stacks, [&](ctx::fiber&& consumer) {
    body([&](std::uint64_t value) {
      element = value;
      consumer = std::move(consumer).resume();
    });
    ended = true;
    return std::move(consumer);
  });
  std::uint64_t sum = 0;
  for (;;) {
    producer = std::move(producer).resume();
    if (ended) {
      return sum;
    }
    bench::add(sum, element);
  }
}

}  // namespace

int main() {
  ctx::pooled_fixedsize_stack stacks(bench::input("STACK"));
  bench::sum_rows(
      "boost-context",
      [&](std::uint64_t n) {
        return total(stacks, [n](auto yield) mutable {
          for (; n != 0; --n) {
            yield(n);
          }
        });
      },
      [&](std::uint64_t n) {
        return total(stacks, [n](auto yield) mutable {
          while (n != 0) {
            yield(n--);
          }
        });
      });
}
