// What the tests of the trimmer share.
#pragma once

#include <cstring>
#include <type_traits>

#include "fiber/support.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/stack/stack.hpp"
#include "pirn/stack/this_stack.hpp"

namespace pirn_test {

constexpr std::size_t trim_depth = 48 << 10;
constexpr std::size_t trim_stack_size = 128 << 10;
// A sanitizer's frames are larger, but a fiber still gives back about `trim_depth`.
constexpr std::size_t shallow = 24 << 10;

PIRN_NOINLINE inline void go_deep() {
  char bytes[trim_depth];
  std::memset(bytes, 1, sizeof bytes);
  asm volatile("" : : "r"(bytes) : "memory");
}

inline std::uint64_t trimmed(const rig& r) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < r.rt.statistics().workers; ++i) {
    all += r.rt.statistics(i).trimmed;
  }
  return all;
}

}  // namespace pirn_test
