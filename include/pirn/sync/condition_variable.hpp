// A condition variable: waits until a condition that a lock guards is true.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "pirn/fiber/detail/current_fiber.hpp"
#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A lock that a condition_variable can unlock and lock again: `mutex`, std::unique_lock of it, and other locks whose
/// unlock does not suspend.
template <class Lock>
concept condition_lock = requires(Lock& lock) {
  lock.lock();
  lock.unlock();
};

/// As std::cv_status, for `condition_variable::wait_for` and `wait_until`.
enum class cv_status : std::uint8_t {
  no_timeout,  ///< it was notified
  timeout,     ///< the deadline has passed, or the caller is asked to stop
};

namespace detail {

// NOLINTBEGIN(bugprone-crtp-constructor-accessibility): it has no state that could be constructed wrongly
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
// NOLINTEND(bugprone-crtp-constructor-accessibility)

/// Repeats `wait` of any condition variable until `ready()`.
template <class Condition, class Lock, class Predicate>
std::expected<void, wait_error> wait_until_ready(Condition& changed, Lock& lock, Predicate& ready,
                                                 platform::time_point deadline) {
  while (!ready()) {
    if (auto result = changed.wait(lock, deadline); !result) {
      return ready() ? std::expected<void, wait_error>{} : result;
    }
  }
  return {};
}

template <class Domain>
class basic_condition_variable : public timed_condition<basic_condition_variable<Domain>> {
 public:
  basic_condition_variable() noexcept = default;
  basic_condition_variable(const basic_condition_variable&) = delete;
  basic_condition_variable& operator=(const basic_condition_variable&) = delete;

  /// Unlocks, suspends until it is notified, the deadline passes or the caller is asked to stop, and locks again in any
  /// case; a stop or deadline does not end that. Never wakes without a reason, but another owner may have got the lock
  /// before the notified waiter. Throws what unlocking throws (std::unique_lock: that it owns nothing), and then has
  /// not waited. Suspension point.
  template <condition_lock Lock>
  [[nodiscard]] std::expected<void, wait_error> wait(Lock& lock, time_limit deadline = platform::never) {
    // The queue is locked before the lock is released, so that no notification can fall between the two.
    waiters_.lock();
    try {
      const no_switch_over held;  // whatever policy the lock has: the caller is not in the queue yet
      lock.unlock();
    } catch (...) {
      waiters_.unlock();
      throw;
    }
    const wake_reason reason =
        waiters_.wait({.deadline = deadline, .what = name_of<Domain>("local condition variable"), .object = this});
    lock.lock();
    return wait_result(reason);
  }

  /// Waits until `ready()`, which is called with the lock held; an error means that it is still false.
  template <condition_lock Lock, std::predicate Predicate>
  [[nodiscard]] std::expected<void, wait_error> wait(Lock& lock, Predicate ready,
                                                     time_limit deadline = platform::never) {
    return wait_until_ready(*this, lock, ready, deadline);
  }

  /// Wakes the longest waiter. With or without the lock held; to switch over, without it.
  void notify_one(wake_policy policy = wake_policy::enqueue) noexcept { waiters_.notify_one(policy); }
  /// Wakes all present waiters. O(n). Never suspends.
  void notify_all() noexcept { waiters_.notify_all(); }

 private:
  typename Domain::queue waiters_;
};

}  // namespace detail

/// As std::condition_variable_any. Fibers of any worker and plain threads share it. It may be destroyed once all its
/// waiters have been notified, even if they have not returned yet.
class condition_variable : public detail::basic_condition_variable<detail::shared_domain> {};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
