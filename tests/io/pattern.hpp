// Bytes that repeat late, for the tests of io and net: what is missing, doubled or out of order shows.
#pragma once

#include <cstdint>
#include <string>

namespace test {

inline std::string pattern(std::size_t size) {
  std::string made(size, '\0');
  std::uint32_t state = 1;
  for (char& c : made) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return made;
}

}  // namespace test
