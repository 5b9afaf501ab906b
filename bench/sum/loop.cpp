// No producer: the consumer does the counting.
#include "sum.hpp"

int main() {
  bench::sum_rows(
      "loop",
      [](std::uint64_t n) {
        std::uint64_t sum = 0;
        for (; n != 0; --n) {
          bench::add(sum, n);
        }
        return sum;
      },
      [](std::uint64_t n) {
        std::uint64_t sum = 0;
        while (n != 0) {
          bench::add(sum, n--);
        }
        return sum;
      });
}
