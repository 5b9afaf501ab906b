// A generator on memory in the consumer's frame.
#pragma once

#include "pirn/coro/generator.hpp"

#include "sum.hpp"

namespace bench {

template <typename Frame>
void sum_rows_in_frame(const char* impl) {
  sum_rows_of_producers(impl, [](auto produce) __attribute__((always_inline)) {
    std::uint64_t sum = 0;
    for (const std::uint64_t element : pirn::generator<std::uint64_t, Frame>(produce)) {
      add(sum, element);
    }
    return sum;
  });
}

}  // namespace bench
