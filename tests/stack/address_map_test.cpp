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

/// Nanoseconds for each of many addresses that are `apart` bytes apart to be added, found and removed: the least of
/// some times, in which no other process was in the way.
double time_of_each(std::uintptr_t apart) {
  constexpr std::uintptr_t many = 1000;
  pirn::detail::address_map all;
  char values[many];
  auto least = std::chrono::nanoseconds::max();
  for (int attempt = 0; attempt < 7; ++attempt) {
    bool found = true;
    const auto begun = std::chrono::steady_clock::now();
    for (std::uintptr_t i = 0; i < many; ++i) {
      found = all.add(address(i, apart), &values[i]) && found;
    }
    for (std::uintptr_t i = 0; i < many; ++i) {
      found = all.find(address(i, apart)) == &values[i] && found;
    }
    for (std::uintptr_t i = 0; i < many; ++i) {
      all.remove(address(i, apart));
    }
    least = std::min(least, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun));
    EXPECT_TRUE(found);
  }
  return static_cast<double>(least.count()) / many;
}

TEST(address_map, addresses_a_power_of_two_apart_are_found_as_soon_as_others) {
  const double others = time_of_each(16 * 1009);
  for (std::uintptr_t apart = 16; apart <= std::uintptr_t{1} << 20; apart *= 2) {
    EXPECT_LT(time_of_each(apart), 8 * others) << apart << " bytes apart, ns; " << others << " of others";
  }
}

}  // namespace
