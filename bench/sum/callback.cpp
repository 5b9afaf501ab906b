// The producer calls the consumer through an opaque pointer.
#include "sum.hpp"

namespace {

using consumer = void (*)(std::uint64_t& sum, std::uint64_t element);

[[gnu::noinline]] void produce_for(std::uint64_t n, consumer consume, std::uint64_t& sum) {
  for (; n != 0; --n) {
    consume(sum, n);
  }
}

[[gnu::noinline]] void produce_while(std::uint64_t n, consumer consume, std::uint64_t& sum) {
  while (n != 0) {
    consume(sum, n--);
  }
}

}  // namespace

int main() {
  const consumer consume = bench::opaque(+[](std::uint64_t& sum, std::uint64_t element) { bench::add(sum, element); });
  bench::sum_rows(
      "callback",
      [consume](std::uint64_t n) {
        std::uint64_t sum = 0;
        produce_for(n, consume, sum);
        return sum;
      },
      [consume](std::uint64_t n) {
        std::uint64_t sum = 0;
        produce_while(n, consume, sum);
        return sum;
      },
      "through a function pointer");
}
