// When a worker waits awake, and for how long.
#include "pirn/fiber/detail/spin_policy.hpp"

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using pirn::detail::spin_policy;
using pirn::platform::time_point;

constexpr time_point begin{1h};

/// Sleeps until it waits awake; how often it slept before.
unsigned sleeps_until_it_waits(spin_policy& policy, time_point now) {
  unsigned sleeps = 0;
  while (!policy.wait(now)) {
    ++sleeps;
  }
  return sleeps;
}

TEST(spin_policy, waits_as_long_as_a_wake_up_has_taken) {
  spin_policy policy(1s);
  static_cast<void>(sleeps_until_it_waits(policy, begin));
  EXPECT_TRUE(policy.wait(begin + spin_policy::min_limit - 1ns));
  EXPECT_FALSE(policy.wait(begin + spin_policy::min_limit));

  for (int i = 0; i < 100; ++i) {
    policy.slept(begin, begin + 1ms, begin + 3ms);
  }
  EXPECT_GT(policy.patience(), 3900us);
  EXPECT_LE(policy.patience(), 4ms);
}

TEST(spin_policy, waits_no_longer_than_allowed) {
  spin_policy policy(50us);
  static_cast<void>(sleeps_until_it_waits(policy, begin));
  EXPECT_TRUE(policy.wait(begin + 49us));
  EXPECT_FALSE(policy.wait(begin + 50us));
  spin_policy never(0s);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(never.wait(begin));
  }
}

TEST(spin_policy, waits_more_rarely_when_that_was_vain) {
  spin_policy policy(1s);
  static_cast<void>(sleeps_until_it_waits(policy, begin));
  unsigned before = 0;
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(policy.wait(begin + 1s));
    const unsigned sleeps = sleeps_until_it_waits(policy, begin);
    EXPECT_EQ(sleeps, std::min(2 * before + 1, spin_policy::max_sleeps_between));
    before = sleeps;
  }
  policy.was_right();
  EXPECT_EQ(sleeps_until_it_waits(policy, begin), 0u);
}

TEST(spin_policy, waits_again_when_it_should_not_have_slept) {
  spin_policy policy(1s);
  static_cast<void>(sleeps_until_it_waits(policy, begin));
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(policy.wait(begin + 1s));
    static_cast<void>(sleeps_until_it_waits(policy, begin));
  }
  EXPECT_FALSE(policy.wait(begin + 1s));
  policy.slept(begin, begin + 10ms, begin + 10ms);  // it did well to sleep
  EXPECT_FALSE(policy.wait(begin));
  policy.slept(begin, begin + 10us, begin + 20us);
  EXPECT_TRUE(policy.wait(begin));
}

TEST(spin_policy, takes_the_wake_up_for_the_arrival_where_that_is_unknown) {
  spin_policy policy(1s);
  for (int i = 0; i < 100; ++i) {
    policy.slept(begin, begin - 1s, begin + 1s);
  }
  EXPECT_EQ(policy.patience(), spin_policy::min_limit);
}

TEST(spin_policy, leaves_the_cpu_to_others_that_want_it) {
  spin_policy policy(1s);
  static_cast<void>(sleeps_until_it_waits(policy, begin));
  policy.was_preempted(begin, begin + 4ms);
  policy.slept(begin, begin + 10us, begin + 20us);
  EXPECT_FALSE(policy.waiting());
  EXPECT_FALSE(policy.wait(begin + 5ms));
  EXPECT_FALSE(policy.wait(begin + 4ms + spin_policy::rests_per_preemption * 4ms - 1ns));
  EXPECT_TRUE(policy.wait(begin + 4ms + spin_policy::rests_per_preemption * 4ms));
}

}  // namespace
