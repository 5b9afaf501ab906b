// Time spans and time limits: units, rounding, saturation, and the clocks of a limit.

#include "pirn/detail/time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

namespace {

namespace platform = pirn::platform;
namespace chrono = std::chrono;
using namespace std::chrono_literals;
using platform::duration;
using platform::time_point;

constexpr auto longest = duration::max();
constexpr auto shortest = duration::min();

// ---- lengths ------------------------------------------------------------------------------------------------------

TEST(time, a_span_of_any_unit_is_the_same_number_of_nanoseconds) {
  static_assert(pirn::time_span(3s) == 3'000'000'000ns);
  static_assert(pirn::time_span(-3min) == -180'000'000'000ns);
  static_assert(pirn::time_span(chrono::duration<int, std::ratio<1, 3>>(3)) == 1s);
  static_assert(pirn::time_span(chrono::duration<short, std::ratio<7>>(-2)) == -14s);
  static_assert(pirn::time_span(chrono::duration<std::uint8_t>(255)) == 255s);
  static_assert(pirn::time_span(chrono::duration<bool>(true)) == 1s);
  static_assert(pirn::time_span() == 0ns);
  EXPECT_EQ(pirn::time_span(0.5s), 500ms);
  EXPECT_EQ(pirn::time_span(-0.5s), -500ms);
  EXPECT_EQ(pirn::time_span(chrono::duration<float, std::milli>(0.25F)), 250us);
}

TEST(time, a_span_is_never_shorter_than_what_it_was_made_of) {
  static_assert(pirn::time_span(chrono::duration<std::int64_t, std::pico>(1)) == 1ns);
  static_assert(pirn::time_span(chrono::duration<std::int64_t, std::pico>(-1)) == 0ns);
  static_assert(pirn::time_span(chrono::duration<std::int64_t, std::pico>(2001)) == 3ns);
  static_assert(pirn::time_span(chrono::duration<std::int64_t, std::pico>(-2001)) == -2ns);
  static_assert(pirn::time_span(chrono::duration<int, std::ratio<1, 3>>(1)) == 333'333'334ns);
  EXPECT_EQ(pirn::time_span(chrono::duration<double, std::nano>(0.1)), 1ns);
  EXPECT_EQ(pirn::time_span(chrono::duration<double, std::nano>(-0.1)), 0ns);
}

TEST(time, a_span_too_long_for_nanoseconds_is_the_longest) {
  EXPECT_EQ(pirn::time_span(chrono::seconds::max()), longest);
  EXPECT_EQ(pirn::time_span(chrono::seconds::min()), shortest);
  EXPECT_EQ(pirn::time_span(chrono::hours::max()), longest);
  EXPECT_EQ(pirn::time_span(chrono::hours::min()), shortest);
  EXPECT_EQ(pirn::time_span(chrono::milliseconds::max()), longest);
  EXPECT_LT(pirn::time_span(chrono::years(292)), longest);
  EXPECT_EQ(pirn::time_span(chrono::years(293)), longest);
  EXPECT_EQ(pirn::time_span(chrono::years(-293)), shortest);
  EXPECT_EQ(pirn::time_span(chrono::nanoseconds::max()), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<std::int64_t, std::exa>(1)), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<std::uint64_t>(~std::uint64_t{0})), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<std::uint64_t, std::nano>(~std::uint64_t{0})), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<std::uint64_t, std::pico>(~std::uint64_t{0})),
            duration(18'446'744'073'709'552));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(pirn::time_span(chrono::duration<double>(infinity)), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<double>(-infinity)), shortest);
  EXPECT_EQ(pirn::time_span(chrono::duration<double>(1e300)), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<float>(1e10F)), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<double, std::nano>(9'223'372'036'854'775'808.0)), longest);
  EXPECT_EQ(pirn::time_span(chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())), 0ns);
}

TEST(time, a_span_that_fits_is_exact_up_to_the_longest) {
  // Picoseconds of half a year and units that no power of ten divides: the product does not fit, the quotient does.
  EXPECT_EQ(pirn::time_span(chrono::duration<std::int64_t, std::pico>(9'223'372'036'854'775'807)),
            duration(9'223'372'036'854'776));
  using thirds = chrono::duration<std::int64_t, std::ratio<1, 3>>;
  EXPECT_EQ(pirn::time_span(thirds(27'000'000'000)), 9'000'000'000s);
  EXPECT_EQ(pirn::time_span(thirds(28'000'000'000)), longest);
  EXPECT_EQ(pirn::time_span(9'223'372'036s), duration(9'223'372'036'000'000'000));
  EXPECT_EQ(pirn::time_span(9'223'372'037s), longest);
  EXPECT_EQ(pirn::time_span(-9'223'372'036s), duration(-9'223'372'036'000'000'000));
  EXPECT_EQ(pirn::time_span(-9'223'372'037s), shortest);
}

// ---- sums ---------------------------------------------------------------------------------------------------------

TEST(time, sums_and_differences_saturate) {
  constexpr time_point now(1h);
  EXPECT_EQ(platform::later(now, 1s), time_point(3601s));
  EXPECT_EQ(platform::later(now, longest), platform::never);
  EXPECT_EQ(platform::later(platform::never, 1ns), platform::never);
  EXPECT_EQ(platform::later(time_point::min(), -1ns), time_point::min());
  EXPECT_EQ(platform::later(time_point(-1h), shortest), time_point::min());
  EXPECT_EQ(platform::between(now, time_point(2h)), 1h);
  EXPECT_EQ(platform::between(now, time_point::min()), shortest);
  EXPECT_EQ(platform::between(time_point(-1h), platform::never), longest);
}

// ---- limits -------------------------------------------------------------------------------------------------------

TEST(time, a_limit_made_of_a_duration_counts_from_now) {
  const time_point before = platform::now();
  const pirn::time_limit soon = 0.5s;
  const time_point after = platform::now();
  EXPECT_GE(soon, before + 500ms);
  EXPECT_LE(soon, after + 500ms);
  EXPECT_EQ(pirn::time_limit(chrono::hours::max()), platform::never);
  EXPECT_EQ(pirn::time_limit(longest), platform::never);
  EXPECT_EQ(pirn::time_limit(chrono::years(400)), platform::never);
  EXPECT_LT(pirn::time_limit(chrono::hours::min()), before);
  const pirn::time_limit passed(-1ns);  // before the clock is read again
  EXPECT_LT(passed, platform::now());
}

TEST(time, a_limit_made_of_a_point_of_our_clock_is_that_point) {
  const time_point when = platform::now();
  EXPECT_EQ(pirn::time_limit(when), when);
  const pirn::time_limit of_seconds = when + 0.5s;  // a sum of doubles, which may be a fraction of a nanosecond off
  EXPECT_GE(of_seconds, when + 500ms - 1us);
  EXPECT_LE(of_seconds, when + 500ms + 1us);
  EXPECT_EQ(pirn::time_limit(platform::never), platform::never);
  using of_hours = chrono::time_point<platform::clock, chrono::hours>;
  EXPECT_EQ(pirn::time_limit(of_hours::max()), platform::never);
  EXPECT_EQ(pirn::time_limit(of_hours::min()), time_point::min());
  EXPECT_EQ(pirn::time_limit(of_hours(2h)), time_point(2h));
}

template <class Clock>
void expect_limits_of() {
  const time_point before = platform::now();
  const pirn::time_limit soon = Clock::now() + 1h;
  const time_point after = platform::now();
  // No clock runs faster than pirn's by a hundredth, and none is set in these microseconds.
  EXPECT_GE(soon, before + 59min);
  EXPECT_LE(soon, after + 61min);
  EXPECT_EQ(pirn::time_limit(Clock::time_point::max()), platform::never);
  using of_hours = chrono::time_point<Clock, chrono::hours>;
  EXPECT_EQ(pirn::time_limit(of_hours::max()), platform::never);
  EXPECT_LT(pirn::time_limit(of_hours::min()), before);
  EXPECT_LT(pirn::time_limit(Clock::time_point::min()), before);
}

/// Counts in floating minutes from the year 1.
struct slow_clock {
  using rep = double;
  using period = std::ratio<60>;
  using duration = chrono::duration<rep, period>;
  using time_point = chrono::time_point<slow_clock, duration>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  static time_point now() { return time_point(chrono::system_clock::now().time_since_epoch() + 1'036'000'000.0min); }
};

TEST(time, a_limit_may_be_a_point_of_any_clock) {
  expect_limits_of<chrono::system_clock>();
  expect_limits_of<chrono::file_clock>();
  const time_point before = platform::now();
  const pirn::time_limit soon = slow_clock::now() + 1h;
  EXPECT_GE(soon, before + 59min);
  EXPECT_LE(soon, platform::now() + 61min);
  EXPECT_LT(pirn::time_limit(slow_clock::time_point()), before);
  EXPECT_EQ(pirn::time_limit(slow_clock::time_point::max()), platform::never);
}

}  // namespace
