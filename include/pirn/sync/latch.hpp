// A latch: opens once, when a number of arrivals is complete.
#pragma once

#include <cstddef>
#include <limits>

#include "pirn/sync/detail/countdown.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

template <class Domain>
class basic_latch {
 public:
  /// Begins with `expected`, which is not negative.
  constexpr explicit basic_latch(std::ptrdiff_t expected, wait_policy waiting = {}) noexcept
      : left_(expected, waiting) {}

  /// Returns the largest number to begin with.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return std::numeric_limits<std::ptrdiff_t>::max(); }

  /// Counts down by `count`; reaching zero wakes all waiters. Aborts when less is left or `count` is negative. Does not
  /// suspend, unless its policy is `switch_over`.
  PIRN_ALWAYS_INLINE void count_down(std::ptrdiff_t count = 1) noexcept {
    left_.take(count, "a local latch is counted down below zero");
  }
  /// Returns whether the count is zero.
  [[nodiscard]] bool try_wait() const noexcept { return left_.left() == 0; }
  /// Suspends until the count is zero, the deadline passes or the caller is asked to stop. Succeeds without suspending
  /// when the count is zero.
  [[nodiscard]] std::expected<void, wait_error> wait(time_limit deadline = platform::never) const noexcept {
    return left_.wait({.deadline = deadline, .what = name_of<Domain>("local latch"), .object = this});
  }
  /// Calls `count_down` and `wait`; on an error it has been counted down.
  [[nodiscard]] std::expected<void, wait_error> arrive_and_wait(std::ptrdiff_t count = 1,
                                                                time_limit deadline = platform::never) noexcept {
    count_down(count);
    return wait(deadline);
  }

 private:
  mutable countdown<Domain> left_;
};

}  // namespace detail

/// As std::latch: counts down to zero once. Fibers of any worker and plain threads share it. It may be destroyed as
/// soon as a `wait` has returned without error, even while the last `count_down` has not returned yet.
class latch : public detail::basic_latch<detail::shared_domain> {
 public:
  using basic_latch::basic_latch;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
