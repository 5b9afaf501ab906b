// The adaptive spinner: when a worker waits awake, and for how long.
#include "pirn/fiber/detail/adaptive_spinner.hpp"

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using pirn::detail::adaptive_spinner;
using pirn::platform::time_point;

constexpr time_point begin{1h};

/// Has the spinner sleep until it waits awake. Returns how often it slept before.
unsigned sleeps_until_it_waits(adaptive_spinner& spinner, time_point now) {
  unsigned sleeps = 0;
  while (!spinner.wait(now)) {
    ++sleeps;
  }
  return sleeps;
}

TEST(adaptive_spinner, waits_as_long_as_a_wake_up_has_taken) {
  adaptive_spinner spinner(1s);
  static_cast<void>(sleeps_until_it_waits(spinner, begin));
  EXPECT_TRUE(spinner.wait(begin + adaptive_spinner::min_limit - 1ns));
  EXPECT_FALSE(spinner.wait(begin + adaptive_spinner::min_limit));

  for (int i = 0; i < 100; ++i) {
    spinner.record_sleep(begin, begin + 1ms, begin + 3ms);
  }
  EXPECT_GT(spinner.limit(), 3900us);
  EXPECT_LE(spinner.limit(), 4ms);
}

TEST(adaptive_spinner, waits_no_longer_than_allowed) {
  adaptive_spinner spinner(50us);
  static_cast<void>(sleeps_until_it_waits(spinner, begin));
  EXPECT_TRUE(spinner.wait(begin + 49us));
  EXPECT_FALSE(spinner.wait(begin + 50us));
  adaptive_spinner never(0s);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(never.wait(begin));
  }
}

TEST(adaptive_spinner, waits_more_rarely_when_that_was_vain) {
  adaptive_spinner spinner(1s);
  static_cast<void>(sleeps_until_it_waits(spinner, begin));
  unsigned before = 0;
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(spinner.wait(begin + 1s));
    const unsigned sleeps = sleeps_until_it_waits(spinner, begin);
    EXPECT_EQ(sleeps, std::min(2 * before + 1, adaptive_spinner::max_sleeps_between));
    before = sleeps;
  }
  spinner.hit();
  EXPECT_EQ(sleeps_until_it_waits(spinner, begin), 0u);
}

TEST(adaptive_spinner, waits_again_when_it_should_not_have_slept) {
  adaptive_spinner spinner(1s);
  static_cast<void>(sleeps_until_it_waits(spinner, begin));
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(spinner.wait(begin + 1s));
    static_cast<void>(sleeps_until_it_waits(spinner, begin));
  }
  EXPECT_FALSE(spinner.wait(begin + 1s));
  spinner.record_sleep(begin, begin + 10ms, begin + 10ms);  // the sleep was the right choice
  EXPECT_FALSE(spinner.wait(begin));
  spinner.record_sleep(begin, begin + 10us, begin + 20us);
  EXPECT_TRUE(spinner.wait(begin));
}

TEST(adaptive_spinner, takes_the_wake_up_for_the_arrival_where_that_is_unknown) {
  adaptive_spinner spinner(1s);
  for (int i = 0; i < 100; ++i) {
    spinner.record_sleep(begin, begin - 1s, begin + 1s);
  }
  EXPECT_EQ(spinner.limit(), adaptive_spinner::min_limit);
}

TEST(adaptive_spinner, waits_on_after_a_moment_of_another_thread) {
  adaptive_spinner spinner(1s);
  static_cast<void>(sleeps_until_it_waits(spinner, begin));
  time_point now = begin;
  for (int i = 0; i < 10; ++i) {
    spinner.record_preemption(now, now + 4ms);
    spinner.record_sleep(now, now + 10us, now + 20us);
    EXPECT_FALSE(spinner.waiting());
    EXPECT_TRUE(spinner.wait(now + 4ms));
    now += 4ms + adaptive_spinner::max_rests * 4ms;
  }
}

TEST(adaptive_spinner, leaves_the_cpu_to_others_that_want_it_again_and_again) {
  adaptive_spinner spinner(1s);
  static_cast<void>(sleeps_until_it_waits(spinner, begin));
  time_point now = begin;
  for (const int rests : {0, 1, 2, 4, 8, 16, adaptive_spinner::max_rests}) {
    const time_point back = now + 4ms;
    spinner.record_preemption(now, back);
    spinner.record_sleep(now, now + 10us, now + 20us);
    if (rests != 0) {
      EXPECT_FALSE(spinner.wait(back + rests * 4ms - 1ns)) << rests;
    }
    EXPECT_TRUE(spinner.wait(back + rests * 4ms)) << rests;
    now = back + rests * 4ms + 4ms;
  }
}

}  // namespace
