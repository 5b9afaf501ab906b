// Shared by the tests of preemptive_swap: a policy that counts, a dispatcher with its tasks, and code that computes.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <utility>

#include "coro/stack_swap_support.hpp"
#include "pirn/coro/expert/preemptive_swap.hpp"

namespace preemption_support {

using namespace std::chrono_literals;
using pirn::swap_error;
using swap_support::unit;

#if defined(PIRN_ASAN) || defined(PIRN_TSAN) || !(defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))
constexpr bool preempts_anywhere = false;  // at safe points only
#else
constexpr bool preempts_anywhere = true;
#endif
#if defined(PIRN_TSAN)
constexpr bool delivers_signals = false;  // ThreadSanitizer keeps them back until the thread calls the system
#else
constexpr bool delivers_signals = true;
#endif

/// A policy that has preempted tasks wait behind the others, and counts.
class preempting : public swap_support::scheduler {
 public:
  bool preempt(pirn::swapped_task& running) noexcept {
    asked = asked + 1;
    errno = ERANGE;  // which no task may see
    if (!willing) {
      return false;
    }
    ready(running);
    return true;
  }

  volatile int asked = 0;
  bool willing = true;
};

struct preemptive_world {
  explicit preemptive_world(pirn::time_span every = 1ms) : swap(policy, {.signal = SIGRTMIN + 3, .every = every}) {}

  unit& spawn(std::function<void()> work) {
    unit& made = units.emplace_back();
    made.work = std::move(work);
    made.assign<&unit::run>(made);
    policy.ready(made);
    return made;
  }
  void yield() {
    policy.ready(*swap.current());
    ASSERT_EQ(swap.block(), swap_error::none);
  }
  void run() { EXPECT_EQ(swap.run(), swap_error::none); }

  preempting policy;
  pirn::preemptive_swap<preempting> swap;
  std::deque<unit> units;
};

struct count_destroyed {
  int& count;
  ~count_destroyed() { ++count; }
};

/// Has many values in registers, of both kinds, and some in its frame.
[[maybe_unused]] PIRN_PREEMPTIBLE static std::uint64_t compute(std::uint64_t seed, std::uint64_t turns) {
  std::uint64_t a = seed;
  std::uint64_t b = seed + 1;
  std::uint64_t c = seed + 2;
  std::uint64_t d = seed + 3;
  auto x = static_cast<double>(seed);
  double y = 1.5;
  std::uint64_t kept[8];
  for (std::uint64_t i = 0; i < 8; ++i) {
    kept[i] = seed * i;
  }
  for (std::uint64_t i = 0; i < turns; ++i) {
    a += b ^ i;
    b = (b << 7 | b >> 57) + c;
    c ^= d + kept[i % 8];
    d = d * 6364136223846793005 + 1;
    kept[i % 8] += a;
    x = x * 0.5 + y;
    y = y * 0.75 + 0.25;
  }
  for (const std::uint64_t each : kept) {
    a ^= each;
  }
  return a ^ b ^ c ^ d ^ static_cast<std::uint64_t>(x * 1000 + y * 100);
}

/// Computes until the count is so large.
[[maybe_unused]] PIRN_PREEMPTIBLE static void compute_until(const volatile int& count, int value) {
  while (count < value) {
  }
}
[[maybe_unused]] PIRN_PREEMPTIBLE static void compute_until_noexcept(const volatile int& count, int value) noexcept {
  while (count < value) {
  }
}

inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
[[maybe_unused]] PIRN_PREEMPTIBLE static void compute_for_turns(volatile std::uint64_t& turns) {
  for (int i = 0; i < 20'000; ++i) {
    turns = turns + 1;
  }
}
/// Computes for at least 30 ms of CPU time, some ticks of every kernel, mostly in a marked function.
[[maybe_unused]] static void compute_for_a_while() {
  volatile std::uint64_t turns = 0;
  for (const double begun = cpu_seconds(); cpu_seconds() < begun + 0.03;) {
    compute_for_turns(turns);
  }
}
/// As `compute_for_a_while`, in functions that are not marked.
inline void compute_unmarked() {
  volatile std::uint64_t turns = 0;
  for (const double begun = cpu_seconds(); cpu_seconds() < begun + 0.03;) {
    turns = turns + 1;
  }
}

#define NEEDS_PREEMPTION_ANYWHERE()                            \
  if (!preempts_anywhere) {                                    \
    GTEST_SKIP() << "tasks are preempted at safe points only"; \
  }

}  // namespace preemption_support
