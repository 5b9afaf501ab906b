// A program of two files on the single header: this one holds pirn's sources.
#define PIRN_IMPLEMENTATION
#include "pirn.hpp"

#include <cstdio>

int plus_one(int to);

namespace {

int sum_of_squares(int most) {
  pirn::generator<int> squares([most](auto& yield) {
    for (int n = 1; n <= most; ++n) {
      yield(n * n);
    }
  });
  int sum = 0;
  for (const int each : squares) {
    sum += each;
  }
  return sum;
}

int through_one_stack(int from) {
  pirn::copy_stack stack(std::size_t{64} << 10U);
  pirn::copied_coroutine<int()> first(stack, [from](auto& yield) {
    yield(from);
    return 2 * from;
  });
  pirn::copied_coroutine<int()> second(stack, [from](auto& yield) {
    yield(10 * from);
    return 20 * from;
  });
  return first.resume() + second.resume() + first.resume() + second.resume();
}

}  // namespace

int main() {
  const bool right = sum_of_squares(4) == 30 && through_one_stack(1) == 33 && plus_one(41) == 42;
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
