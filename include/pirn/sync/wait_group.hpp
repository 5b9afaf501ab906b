// A wait group: waits until a number of items is done.
#pragma once

#include "pirn/sync/detail/countdown.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

template <class Domain>
class basic_wait_group {
 public:
  /// Begins with `count` items to be done.
  constexpr explicit basic_wait_group(std::uint32_t count = 0, wait_policy waiting = {}) noexcept
      : left_(count, waiting) {}

  /// Adds `count` items. Must come before the `done` that could bring the count to zero; a `wait` that comes first may
  /// miss it.
  void add(std::uint32_t count = 1) noexcept { left_.add(count); }

  /// Marks one item as done; the last one wakes all waiters. Aborts when more are done than were added. Does not
  /// suspend, unless its policy is `switch_over`.
  PIRN_ALWAYS_INLINE void done() noexcept {
    left_.take(1, "done() called on a local wait_group more often than items were added");
  }

  /// Suspends until no item is left, the deadline passes or the caller is asked to stop. Succeeds without suspending
  /// when none is left.
  [[nodiscard]] std::expected<void, wait_error> wait(time_limit deadline = platform::never) noexcept {
    return left_.wait({.deadline = deadline, .what = name_of<Domain>("local wait group"), .object = this});
  }

  /// Returns the number of items left at this moment.
  [[nodiscard]] std::uint64_t count() const noexcept { return static_cast<std::uint64_t>(left_.left()); }

 private:
  countdown<Domain> left_;
};

}  // namespace detail

/// Counts the items still to be done, and lets others wait until none is left. Fibers of any worker and plain threads
/// share it. It may be destroyed as soon as a `wait` has returned without error, and used again as well.
class wait_group : public detail::basic_wait_group<detail::shared_domain> {
 public:
  using basic_wait_group::basic_wait_group;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
