// A hundred million coroutines at once on one stack, where memory is sufficient.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "pirn/coro/expert/copied_coroutine.hpp"

namespace {

using coroutine = pirn::copied_coroutine<void()>;
constexpr std::size_t amount = 100'000'000;

std::uint64_t turns = 0;

void begin(coroutine& each, pirn::copy_stack& stack) {
  each = coroutine(stack, [](coroutine::yield& yield) PIRN_NONE {
    ++turns;
    yield();
    ++turns;
    yield();
    ++turns;
  });
  each.resume();
}

/// Bytes of a line of /proc/`file`.
std::size_t memory(const std::string& file, const std::string& line) {
  std::ifstream lines("/proc/" + file);
  std::string word;
  std::size_t kib = 0;
  while (lines >> word) {
    if (word == line + ":") {
      lines >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

/// Returns the bytes that each of a hundred thousand more coroutines takes.
std::size_t bytes_each(pirn::copy_stack& stack) {
  constexpr std::size_t sample = 100'000;
  const std::size_t before = memory("self/status", "VmRSS");
  std::vector<coroutine> all(sample);
  for (coroutine& each : all) {
    begin(each, stack);
  }
  const std::size_t held = memory("self/status", "VmRSS") - before;
  for (coroutine& each : all) {
    each.resume();
    each.resume();
  }
  return (held + sample - 1) / sample;
}

TEST(copied_coroutine, a_hundred_million_run_to_their_ends) {
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
  GTEST_SKIP() << "a sanitizer needs several times the memory";
#endif
  pirn::copy_stack stack(std::size_t{1} << 16);
  const std::size_t each_one = bytes_each(stack);
#if defined(PIRN_HAS_NONE) && defined(__OPTIMIZE__)
  EXPECT_LE(each_one, 200U) << "bytes, with the object and what malloc adds, as clang 22 compiles the body";
#endif
  const std::size_t needed = amount * each_one + (std::size_t{256} << 20);
  const std::size_t available = memory("meminfo", "MemAvailable");
  if (available < needed) {
    GTEST_SKIP() << "needs " << (needed >> 20) << " MiB, and " << (available >> 20) << " MiB are available";
  }
  turns = 0;
  std::vector<coroutine> all(amount);
  for (coroutine& each : all) {
    begin(each, stack);
  }
  for (int round = 0; round < 2; ++round) {
    for (coroutine& each : all) {
      ASSERT_FALSE(each.done());
      each.resume();
    }
  }
  EXPECT_EQ(turns, 3 * amount);
  for (const coroutine& each : all) {
    ASSERT_TRUE(each.done());
  }
}

}  // namespace
