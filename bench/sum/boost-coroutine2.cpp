// Boost.Coroutine2 on pooled stacks.
#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/pooled_fixedsize_stack.hpp>

#include "sum.hpp"

namespace {

using coroutine = boost::coroutines2::coroutine<std::uint64_t>;

template <typename Body>
std::uint64_t total(boost::coroutines2::pooled_fixedsize_stack& stacks, Body body) {
  std::uint64_t sum = 0;
  for (coroutine::pull_type elements(stacks, body); elements; elements()) {
    bench::add(sum, elements.get());
  }
  return sum;
}

}  // namespace

int main() {
  boost::coroutines2::pooled_fixedsize_stack stacks(bench::input("STACK"));
  bench::sum_rows(
      "boost-coroutine2",
      [&](std::uint64_t n) {
        return total(stacks, [n](coroutine::push_type& yield) mutable {
          for (; n != 0; --n) {
            yield(n);
          }
        });
      },
      [&](std::uint64_t n) {
        return total(stacks, [n](coroutine::push_type& yield) mutable {
          while (n != 0) {
            yield(n--);
          }
        });
      });
}
