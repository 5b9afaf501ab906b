// Helpers that the stress programs share.
#pragma once

#include <chrono>
#include <cstdlib>

#include "pirn/detail/abi.hpp"

namespace pirn_test {

/// Returns how long a program lasts: as many seconds as PIRN_STRESS_SECONDS says (`./dev test --all` and `--soak` set
/// it), otherwise as long as every run of the tests can afford. Without a sanitizer that is less.
inline std::chrono::milliseconds stress_time(std::chrono::milliseconds usual) {
#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
  usual /= 2;
#endif
  const char* const seconds = std::getenv("PIRN_STRESS_SECONDS");
  return seconds != nullptr ? std::chrono::seconds(std::strtoul(seconds, nullptr, 10)) : usual;
}

}  // namespace pirn_test
