// Coroutines on one stack, with images of several sizes, resumed in and against the order of creation and at random.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "pirn/coro/expert/copied_coroutine.hpp"

namespace {

using coroutine = pirn::copied_coroutine<int()>;

template <std::size_t size>
coroutine make(pirn::copy_stack& stack, int number) {
  return coroutine(stack, [number](coroutine::yield& yield) -> int {
    unsigned char kept[size];
    std::fill(kept, kept + size, static_cast<unsigned char>(number));
    asm volatile("" : : "r"(kept) : "memory");
    for (;;) {
      yield(std::all_of(kept, kept + size, [&](unsigned char each) { return each == kept[0]; }) ? kept[0] : -1);
    }
  });
}

}  // namespace

int main() {
  constexpr int amount = 200;
  pirn::copy_stack stack(std::size_t{1} << 16);
  std::vector<coroutine> all;
  for (int i = 0; i < amount; ++i) {
    switch (i / 50) {
      case 0:
        all.push_back(make<8>(stack, i));
        break;
      case 1:
        all.push_back(make<120>(stack, i));
        break;
      case 2:
        all.push_back(make<200>(stack, i));
        break;
      default:
        all.push_back(make<1000>(stack, i));
    }
  }
  std::vector<int> order(amount);
  std::iota(order.begin(), order.end(), 0);
  const auto round = [&] {
    for (const int i : order) {
      if (all[static_cast<std::size_t>(i)].resume() != i) {
        std::printf("number %d has lost what it kept\n", i);
        return false;
      }
    }
    return true;
  };
  bool good = true;
  for (int i = 0; good && i < 6; ++i) {
    good = round();
    if (i == 2) {
      std::reverse(order.begin(), order.end());
    }
  }
  std::mt19937 random(1);
  for (int i = 0; good && i < 10; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    good = round();
  }
  return good ? 0 : 1;
}
