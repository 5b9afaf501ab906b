// Deadlines and durations as callers pass them: of any clock and any unit, also too far away for nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ratio>
#include <type_traits>

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The clock of deadlines: the steady clock, and in an exploration the simulated one.
using clock = platform::clock;
/// A point of that clock.
using time_point = platform::time_point;
/// The deadline that never comes; the default of calls that may wait.
inline constexpr time_point never = platform::never;

namespace platform {

/// Returns `from + by`, limited to the latest point there is (`never`) and the earliest.
[[nodiscard]] constexpr time_point later(time_point from, duration by) noexcept {
  duration::rep sum = 0;
  if (__builtin_add_overflow(from.time_since_epoch().count(), by.count(), &sum)) [[unlikely]] {
    return by > duration::zero() ? time_point::max() : time_point::min();
  }
  return time_point(duration(sum));
}

/// Returns `to - from`, limited to the longest duration there is and the shortest.
[[nodiscard]] constexpr duration between(time_point from, time_point to) noexcept {
  duration::rep difference = 0;
  if (__builtin_sub_overflow(to.time_since_epoch().count(), from.time_since_epoch().count(), &difference))
      [[unlikely]] {
    return to > from ? duration::max() : duration::min();
  }
  return duration(difference);
}

namespace detail {

static_assert(std::is_same_v<duration::period, std::nano>);

/// Converts to nanoseconds, as exactly as a floating-point number can.
template <class Rep, class Period>
constexpr long double ticks_of(const std::chrono::duration<Rep, Period>& given) noexcept {
  return static_cast<long double>(given.count()) * Period::num * std::nano::den / Period::den;
}

constexpr duration of_ticks(long double ticks) noexcept {
  using rep = duration::rep;
  constexpr auto beyond = -static_cast<long double>(std::numeric_limits<rep>::min());  // exact, unlike the maximum
  if (ticks >= beyond) {
    return duration::max();
  }
  if (ticks <= -beyond) {
    return duration::min();
  }
  if (__builtin_isnan(ticks)) {  // not a number
    return duration::zero();
  }
  const auto whole = static_cast<rep>(ticks);
  return static_cast<long double>(whole) < ticks ? later(time_point(duration(whole)), duration(1)).time_since_epoch()
                                                 : duration(whole);
}

/// Returns `count * num / den`, rounded up, with num and den > 0.
template <std::intmax_t num, std::intmax_t den>
constexpr duration of_ratio(duration::rep count) noexcept {
  // In parts, since the product may be too large where the quotient is not.
  duration::rep whole = 0;
  if (__builtin_mul_overflow(count / den, num, &whole)) {
    return count > 0 ? duration::max() : duration::min();
  }
  const duration::rep rest = count % den * num;
  const duration::rep part = rest / den + (rest % den > 0 ? 1 : 0);
  return later(time_point(duration(whole)), duration(part)).time_since_epoch();
}

}  // namespace detail

/// Converts to the unit of `duration`, rounded up and limited to the longest duration and the shortest. Not a number
/// becomes zero.
template <class Rep, class Period>
[[nodiscard]] constexpr duration saturated(const std::chrono::duration<Rep, Period>& given) noexcept {
  constexpr std::intmax_t in_a_second = std::nano::den;
  constexpr std::intmax_t common = std::gcd(in_a_second, Period::den);
  constexpr std::intmax_t den = Period::den / common;
  if constexpr (std::is_same_v<std::chrono::duration<Rep, Period>, duration>) {
    return given;
  } else if constexpr (std::is_integral_v<Rep> && sizeof(Rep) <= sizeof(duration::rep) &&
                       Period::num <= duration::max().count() / (in_a_second / common) / den) {
    if (std::is_signed_v<Rep> ||
        static_cast<std::uintmax_t>(given.count()) <= static_cast<std::uintmax_t>(duration::max().count())) {
      return detail::of_ratio<Period::num*(in_a_second / common), den>(static_cast<duration::rep>(given.count()));
    }
  }
  return detail::of_ticks(detail::ticks_of(given));
}

}  // namespace platform

/// A length of time, made from a duration of any unit, also a floating-point one (`0.5s`). It counts nanoseconds,
/// rounded up. A duration that is too long or too short becomes the longest or the shortest one, some 292 years.
struct time_span : platform::duration {
  constexpr time_span() noexcept : platform::duration(platform::duration::zero()) {}
  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor): what it is for
  constexpr time_span(const std::chrono::duration<Rep, Period>& given) noexcept
      : platform::duration(platform::saturated(given)) {}
};

/// The time until which a call may wait: a time point of any clock, or a duration, which counts from now. It becomes a
/// point of `platform::clock`, not earlier than the given one. A point that is too late for that clock becomes
/// `platform::never`; one that has passed means to try only. A point of another clock is compared with that clock once,
/// here: later changes of that clock (such as a new system time) do not move the deadline. A loop that waits several
/// times makes one limit from its timeout first, and passes that.
struct time_limit : platform::time_point {
  /// Makes a limit that has passed.
  constexpr time_limit() noexcept = default;
  constexpr time_limit(platform::time_point when) noexcept  // NOLINT(google-explicit-constructor): what it is for
      : platform::time_point(when) {}
  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor)
  time_limit(const std::chrono::duration<Rep, Period>& how_long) noexcept
      : platform::time_point(platform::later(platform::now(), platform::saturated(how_long))) {}
  template <class Clock, class Duration>
    requires requires { Clock::now() - std::chrono::time_point<Clock, Duration>(); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  time_limit(const std::chrono::time_point<Clock, Duration>& when) noexcept(noexcept(Clock::now()))
      : platform::time_point(of(when)) {}

 private:
  static constexpr bool is_exact(platform::time_point saturated) noexcept {
    return saturated != platform::time_point::min() && saturated != platform::time_point::max();
  }
  template <class Clock, class Duration>
  static platform::time_point of(const std::chrono::time_point<Clock, Duration>& when) {
    const platform::time_point there(platform::saturated(when.time_since_epoch()));
    if constexpr (std::is_same_v<Clock, platform::clock>) {
      return there;
    } else {
      const auto since_epoch = Clock::now().time_since_epoch();  // before our clock, so that the limit is not early
      const platform::time_point now_there(platform::saturated(since_epoch));
      const bool exact = is_exact(there) && is_exact(now_there);
      // A clock may count from so long ago that its points do not fit into nanoseconds.
      const platform::duration left =
          exact ? platform::between(now_there, there)
                : platform::detail::of_ticks(platform::detail::ticks_of(when.time_since_epoch()) -
                                             platform::detail::ticks_of(since_epoch));
      return when == when.max() ? platform::never : platform::later(platform::now(), left);
    }
  }
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
