// A C++20 coroutine that is visible to its consumer: the compiler may inline its frame and its body there.
#include "../generator.hpp"
#include "sum.hpp"

namespace {

inline bench::generator<std::uint64_t> produce_for(std::uint64_t n) {
  for (; n != 0; --n) {
    co_yield n;
  }
}

inline bench::generator<std::uint64_t> produce_while(std::uint64_t n) {
  while (n != 0) {
    co_yield n--;
  }
}

}  // namespace

int main() {
  bench::sum_rows(
      "cpp20-inlinable",
      [](std::uint64_t n) {
        std::uint64_t sum = 0;
        for (auto elements = produce_for(n); elements.next();) {
          bench::add(sum, elements.value());
        }
        return sum;
      },
      [](std::uint64_t n) {
        std::uint64_t sum = 0;
        for (auto elements = produce_while(n); elements.next();) {
          bench::add(sum, elements.value());
        }
        return sum;
      },
      "the producer is inlined");
}
