// Waits with the names and results of the standard library: for programs that come from there, and for code that calls
// them by name (std::unique_lock). Each is the wait of this library that takes a deadline.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "pirn/detail/time.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// As std::cv_status, for `condition_variable::wait_for` and `wait_until`.
enum class cv_status : std::uint8_t {
  no_timeout,  ///< it was notified
  timeout,     ///< the deadline has passed, or the caller is asked to stop
};
/// As std::future_status, for `future::wait_for` and `wait_until`; no future is `deferred`.
enum class future_status : std::uint8_t { ready, timeout, deferred };

namespace detail {

// NOLINTBEGIN(bugprone-crtp-constructor-accessibility): they have no state that could be constructed wrongly
/// For a lock with `lock(time_limit)`.
template <class Lock>
class timed_lock {
 public:
  /// Locks. False if that much time passes or the caller is asked to stop first. Suspension point.
  [[nodiscard]] bool try_lock_for(time_span how_long) noexcept { return try_lock_until(how_long); }
  /// As `try_lock_for`, but until a point in time of any clock.
  [[nodiscard]] bool try_lock_until(time_limit when) noexcept {
    return static_cast<Lock&>(*this).lock(when).has_value();
  }
};
/// For a lock with `lock_shared(time_limit)` too.
template <class Lock>
class timed_shared_lock : public timed_lock<Lock> {
 public:
  /// As `try_lock_for` and `try_lock_until`, to read.
  [[nodiscard]] bool try_lock_shared_for(time_span how_long) noexcept { return try_lock_shared_until(how_long); }
  [[nodiscard]] bool try_lock_shared_until(time_limit when) noexcept {
    return static_cast<Lock&>(*this).lock_shared(when).has_value();
  }
};
/// For a semaphore with `acquire(time_limit)`.
template <class Semaphore>
class timed_semaphore {
 public:
  /// Takes a permit. False if that much time passes or the caller is asked to stop first. Suspension point.
  [[nodiscard]] bool try_acquire_for(time_span how_long) noexcept { return try_acquire_until(how_long); }
  /// As `try_acquire_for`, but until a point in time of any clock.
  [[nodiscard]] bool try_acquire_until(time_limit when) noexcept {
    return static_cast<Semaphore&>(*this).acquire(when).has_value();
  }
};
/// For a condition variable with `wait(lock, time_limit)`.
template <class Condition>
class timed_condition {
 public:
  /// As `wait` with a deadline. A stop counts as a timeout here; `wait` distinguishes them. Suspension point.
  template <class Lock>
  [[nodiscard]] cv_status wait_for(Lock& lock, time_span how_long) {
    return wait_until(lock, how_long);
  }
  template <class Lock>
  [[nodiscard]] cv_status wait_until(Lock& lock, time_limit when) {
    return static_cast<Condition&>(*this).wait(lock, when) ? cv_status::no_timeout : cv_status::timeout;
  }
  /// Waits until `ready()`, and returns its last result: false after a timeout or a stop.
  template <class Lock, std::predicate Predicate>
  [[nodiscard]] bool wait_for(Lock& lock, time_span how_long, Predicate ready) {
    return wait_until(lock, how_long, std::move(ready));
  }
  template <class Lock, std::predicate Predicate>
  [[nodiscard]] bool wait_until(Lock& lock, time_limit when, Predicate ready) {
    return static_cast<Condition&>(*this).wait(lock, std::move(ready), when).has_value();
  }
};
/// For a future with `wait(time_limit)`.
template <class Future>
class timed_future {
 public:
  /// As `wait` with a deadline. A stop counts as a timeout here; `wait` distinguishes them. Suspension point.
  [[nodiscard]] future_status wait_for(time_span how_long) const { return wait_until(how_long); }
  /// As `wait_for`, but until a point in time of any clock.
  [[nodiscard]] future_status wait_until(time_limit when) const {
    return static_cast<const Future&>(*this).wait(when) ? future_status::ready : future_status::timeout;
  }
};
// NOLINTEND(bugprone-crtp-constructor-accessibility)

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
