// The table from addresses to pointers, for values of bodies that take turns on one stack.

#include "pirn/stack/detail/address_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace {

const void* address(std::uintptr_t number, std::uintptr_t apart) {
  return reinterpret_cast<const void*>((std::uintptr_t{1} << 30) + number * apart);
}

TEST(address_map, addresses_a_power_of_two_apart_are_found_as_soon_as_others) {
  constexpr std::uintptr_t many = 1000;
  for (std::uintptr_t apart = 16; apart <= std::uintptr_t{1} << 20; apart *= 2) {
    pirn::detail::address_map all;
    char values[many];
    // The least of some times, in which no other process was in the way.
    auto least = std::chrono::nanoseconds::max();
    for (int attempt = 0; attempt < 5; ++attempt) {
      const auto begun = std::chrono::steady_clock::now();
      for (std::uintptr_t i = 0; i < many; ++i) {
        ASSERT_TRUE(all.add(address(i, apart), &values[i]));
      }
      for (std::uintptr_t i = 0; i < many; ++i) {
        ASSERT_EQ(all.find(address(i, apart)), &values[i]);
      }
      for (std::uintptr_t i = 0; i < many; ++i) {
        all.remove(address(i, apart));
      }
      least = std::min(least, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun));
    }
    EXPECT_LT(least.count() / many, 600u) << apart << " bytes apart: each ns, of some 20; a sanitizer's some 100";
  }
}

}  // namespace
