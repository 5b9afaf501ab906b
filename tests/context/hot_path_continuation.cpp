// Loops over typed continuations: hot_path_test.py checks their machine code, hot_path_count_test.py counts the
// instructions that they execute.
//
//    hot_path_continuation COUNT   makes COUNT round trips
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "pirn/context/continuation.hpp"

using word = std::uint64_t;
using ping_pong = pirn::continuation<word, word>;

namespace {

struct memory {
  void* bottom;
  std::size_t size;
  [[nodiscard]] void* limit() const { return bottom; }
  [[nodiscard]] void* top() const { return static_cast<char*>(bottom) + size; }
};

alignas(16) char stack_bytes[std::size_t{64} << 10];

}  // namespace

// Two values each way; nothing but the loop's own counter may be in memory.
extern "C" word two_values_loop(ping_pong& other, word count) {
  ping_pong k = std::move(other);
  word a = 1, b = 2;
  for (word i = 0; i < count; ++i) {
    auto [next, x, y] = std::move(k).resume(a, b);
    k = std::move(next);
    a = x;
    b = y;
  }
  other = std::move(k);
  return a + b;
}

// `held` is live over the loop and used after it: it should be stored on the stack once, before the loop.
extern "C" word live_over_loop(ping_pong& other, word count, word held) {
  ping_pong k = std::move(other);
  word a = 1, b = 2;
  for (word i = 0; i < count; ++i) {
    std::tie(a, b) = k.exchange(a, b);
  }
  other = std::move(k);
  return a + b + held;
}

// A constant is loaded again after the switch instead of being kept over it.
extern "C" word constant_in_loop(ping_pong& other, word count) {
  ping_pong k = std::move(other);
  word a = 1, b = 2;
  for (word i = 0; i < count; ++i) {
    std::tie(a, b) = k.exchange(a, b);
    a ^= 0x123456789abcdef;
  }
  other = std::move(k);
  return a + b;
}

// The other side of all these loops.
extern "C" void make_echo(ping_pong& k) {
  k = ping_pong(memory{stack_bytes, sizeof stack_bytes}, [](ping_pong back, word a, word b) -> ping_pong::finished {
    for (;;) {
      std::tie(a, b) = back.exchange(a + 1, b + 3);
    }
  });
}

#if !defined(HOT_PATH_NO_MAIN)
int main(int argc, char** argv) {
  const word count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  ping_pong other;
  make_echo(other);
  const word sum = two_values_loop(other, count);
  return sum == 3 + 4 * count ? 0 : 1;
}
#endif
