// Shared by the tests of generators.
#pragma once

#include <ranges>
#include <vector>

namespace generator_test {

/// Counts how many of them are alive.
class counted {
 public:
  explicit counted(int& alive) : alive_(alive) { ++alive_; }
  ~counted() { --alive_; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;

 private:
  int& alive_;
};

template <class Range>
auto taken(Range&& range) {
  std::vector<std::ranges::range_value_t<Range>> all;
  for (auto&& element : range) {
    all.push_back(static_cast<decltype(element)>(element));
  }
  return all;
}

/// A call with arguments on the stack, and a separate frame full of other things.
[[gnu::noinline]] inline long many(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
  volatile long rubbish[20];
  for (volatile long& each : rubbish) {
    each = 0x5a5a5a5a;
  }
  return a + b + c + d + e + f + g + h + i + (rubbish[3] & 0);
}

}  // namespace generator_test
