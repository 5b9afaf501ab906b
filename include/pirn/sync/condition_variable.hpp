// A condition variable: waits until a condition that a lock guards is true.
#pragma once

#include <concepts>

#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/sync/detail/std_forms.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A lock that a condition_variable can unlock and lock again: `mutex`, std::unique_lock of it, and other locks whose
/// unlock does not suspend.
template <class Lock>
concept condition_lock = requires(Lock& lock) {
  lock.lock();
  lock.unlock();
};

namespace detail {

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

}  // namespace detail

/// As std::condition_variable_any. Fibers of any worker and plain threads share it. It may be destroyed once all its
/// waiters have been notified, even if they have not returned yet.
class condition_variable : public detail::timed_condition<condition_variable> {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  /// Unlocks, suspends until it is notified, the deadline passes or the caller is asked to stop, and locks again in any
  /// case; a stop or deadline does not end that. Never wakes without a reason, but another owner may have got the lock
  /// before the notified waiter. Throws what unlocking throws (std::unique_lock: that it owns nothing), and then has
  /// not waited. Suspension point.
  template <condition_lock Lock>
  [[nodiscard]] std::expected<void, wait_error> wait(Lock& lock, time_limit deadline = platform::never) {
    // The queue is locked before the lock is released, so that no notification can fall between the two.
    waiters_.lock();
    try {
      lock.unlock();
    } catch (...) {
      waiters_.unlock();
      throw;
    }
    const wake_reason reason = waiters_.wait({.deadline = deadline, .what = "condition variable", .object = this});
    lock.lock();
    if (reason != wake_reason::notified) {
      return std::unexpected(detail::error_of(reason));
    }
    return {};
  }

  /// Waits until `ready()`, which is called with the lock held; an error means that it is still false.
  template <condition_lock Lock, std::predicate Predicate>
  [[nodiscard]] std::expected<void, wait_error> wait(Lock& lock, Predicate ready,
                                                     time_limit deadline = platform::never) {
    return detail::wait_until_ready(*this, lock, ready, deadline);
  }

  /// Wakes the longest waiter. With or without the lock held; to switch over, without it.
  void notify_one(wake_policy policy = wake_policy::enqueue) noexcept { waiters_.notify_one(policy); }
  /// Wakes all present waiters. O(n). Never suspends.
  void notify_all() noexcept { waiters_.notify_all(); }

 private:
  wait_queue waiters_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
