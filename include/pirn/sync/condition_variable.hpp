// Waiting for something that a mutex guards to become true.
#pragma once

#include <concepts>
#include <mutex>
#include <utility>

#include "pirn/sync/mutex.hpp"

namespace pirn::inline PIRN_ABI {

/// As std::condition_variable. Fibers of any worker and plain threads share it. May be destroyed once all its waiters
/// have been notified, even if they have not returned yet.
class condition_variable {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  /// Unlocks, suspends until it is notified, the deadline passes or the caller is asked to stop, and locks again in
  /// any case; that is not ended by a stop or deadline. Never wakes without a reason, but the mutex's next owner may
  /// have been faster than the one notified. Aborts if `lock` does not own its mutex. Suspension point.
  [[nodiscard]] std::expected<void, wait_error> wait(std::unique_lock<mutex>& lock,
                                                     platform::time_point deadline = platform::never) noexcept;

  /// Waits until `ready()`, which is called with the mutex locked; an error means that it is still false.
  template <std::predicate Predicate>
  [[nodiscard]] std::expected<void, wait_error> wait(std::unique_lock<mutex>& lock, Predicate ready,
                                                     platform::time_point deadline = platform::never) {
    while (!ready()) {
      if (auto result = wait(lock, deadline); !result) {
        return ready() ? std::expected<void, wait_error>{} : result;
      }
    }
    return {};
  }

  /// Wakes the one that has waited longest. With or without the mutex. Never suspends.
  void notify_one() noexcept { waiters_.notify_one(); }
  /// Wakes all that wait now. O(n). Never suspends.
  void notify_all() noexcept { waiters_.notify_all(); }

 private:
  wait_queue waiters_;
};

}  // namespace pirn::inline PIRN_ABI
