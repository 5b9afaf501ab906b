// The generator's body and the consumer in one loop.
#include "pirn/coro/generator.hpp"

#include "sum.hpp"

int main() {
  bench::sum_rows_of_producers("pirn-foreach", [](auto produce) {
    std::uint64_t sum = 0;
    pirn::for_each<std::uint64_t>(produce, [&](std::uint64_t element) { bench::add(sum, element); });
    return sum;
  });
}
