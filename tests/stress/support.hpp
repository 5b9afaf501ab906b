// What the stress programs share.
#pragma once

#include <chrono>
#include <cstdlib>

namespace pirn_test {

/// How long a program lasts: as many seconds as PIRN_STRESS_SECONDS says (`./dev test --all` and `--soak` do), else as
/// long as every run of the tests can afford.
inline std::chrono::milliseconds stress_time(std::chrono::milliseconds usual) {
  const char* const seconds = std::getenv("PIRN_STRESS_SECONDS");
  return seconds != nullptr ? std::chrono::seconds(std::strtoul(seconds, nullptr, 10)) : usual;
}

}  // namespace pirn_test
