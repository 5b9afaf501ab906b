// Waiting for something that a lock guards to become true.
#pragma once

#include <concepts>

#include "pirn/fiber/wait_queue.hpp"
#include "pirn/sync/detail/std_forms.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// What a condition_variable can let go of and take again: `mutex`, std::unique_lock of it, and other locks whose
/// unlock does not suspend.
template <class Lock>
concept condition_lock = requires(Lock& lock) {
  lock.lock();
  lock.unlock();
};

namespace detail {

/// The waits of any condition variable until `ready()`.
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

/// As std::condition_variable_any. Fibers of any worker and plain threads share it. May be destroyed once all its
/// waiters have been notified, even if they have not returned yet.
class condition_variable : public detail::timed_condition<condition_variable> {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  /// Unlocks, suspends until it is notified, the deadline passes or the caller is asked to stop, and locks again in
  /// any case; that is not ended by a stop or deadline. Never wakes without a reason, but the lock's next owner may
  /// have been faster than the one notified. Throws what unlocking throws (std::unique_lock: that it owns nothing),
  /// and then has not waited. Suspension point.
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

  /// Wakes the one that has waited longest. With or without the lock held, but without it to switch over.
  void notify_one(wake_policy policy = wake_policy::enqueue) noexcept { waiters_.notify_one(policy); }
  /// Wakes all that wait now. O(n). Never suspends.
  void notify_all() noexcept { waiters_.notify_all(); }

 private:
  wait_queue waiters_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
