// Waiters of locks that are handed off. Until such a waiter runs, `try_lock` may take the lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/sync/expert/wait_policy.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A waiter of a lock that is handed off; lives in the frame of the call, as the value of its `waiter`. Until it runs,
/// `try_lock` may take the lock from it (a bypass), and it waits again, at the front. Otherwise callers that lock one,
/// try the others and back off (std::scoped_lock) might find each lock handed off to a waiter that has not run yet.
/// Such a waiter would back off in turn, for ever. A waiter of another worker is only woken, and `lock` may bypass it
/// too: otherwise a contended lock would lie idle for the length of a wake-up each time. After `bypass_limit` bypasses
/// no call may take the lock from it.
class lock_waiter {
 public:
  lock_waiter() noexcept = default;
  /// For a lock that is not fair, bypasses do not count: the waiter waits again behind all others.
  explicit lock_waiter(bool counts_bypasses) noexcept : max_bypasses_(counts_bypasses ? bypass_limit : 0) {}

  /// Called by the unlocker, before `w` is made runnable: grants it the lock if its bypass limit is reached. False if
  /// it may be bypassed.
  [[nodiscard]] static bool try_grant(const waiter& w) noexcept {
    auto& to = *static_cast<lock_waiter*>(w.value);
    return to.owns_ = bypass_limit_reached(w);
  }
  /// Returns whether `w` was bypassed so often that it must get the lock.
  [[nodiscard]] static bool bypass_limit_reached(const waiter& w) noexcept {
    return static_cast<lock_waiter*>(w.value)->bypasses_ >= bypass_limit;
  }
  /// Called by the unlocker: grants `w` the lock unconditionally, for a permit, which no `try_acquire` takes from it.
  static void grant(const waiter& w) noexcept { static_cast<lock_waiter*>(w.value)->owns_ = true; }

  /// Suspends the caller in `list`; `lock` is held and then released.
  template <class Lock>
  [[nodiscard]] wake_reason wait(wait_list& list, Lock& lock, const wait_options& options,
                                 wait_order order = wait_order::fifo) noexcept {
    return bypasses_ == 0 && order == wait_order::fifo ? list.wait(lock, options, this)
                                                       : list.wait_in_front(lock, options, this);
  }
  /// After a notified wait: returns whether the lock was granted, so that no call can have taken it.
  [[nodiscard]] bool owns() const noexcept { return owns_; }
  void count_bypass() noexcept {
    if (bypasses_ < max_bypasses_) {
      ++bypasses_;
    }
  }

 private:
  friend class admitted_readers;
  static constexpr std::uint8_t bypass_limit = 4;

  std::uint8_t max_bypasses_ = bypass_limit;  ///< that count
  std::uint8_t bypasses_ = 0;
  bool owns_ = false;
  std::uint32_t generation_ = 0;  ///< of the admission of a reader
};

/// The admitted readers that a lock counts, and that have not run yet. Each waits as a `lock_waiter`. If `try_lock`
/// takes the lock to write, all these admissions are revoked. Guarded by the lock of the lists of waiters.
class admitted_readers {
 public:
  /// Admits the claimed readers, before they are made runnable. Returns their number.
  [[nodiscard]] std::uint32_t admit(const waiter* chain) noexcept {
    std::uint32_t number = 0;
    for (const waiter* w = chain; w != nullptr; w = w->next) {
      ++number;
      if (!lock_waiter::try_grant(*w)) {
        static_cast<lock_waiter*>(w->value)->generation_ = generation_;
        ++count_;
      }
    }
    return number;
  }
  /// Makes the claimed readers try again once they run, as if their admission were revoked at once. None of them has
  /// reached its bypass limit.
  void mark_to_retry(const waiter* chain) const noexcept {
    for (const waiter* w = chain; w != nullptr; w = w->next) {
      auto& who = *static_cast<lock_waiter*>(w->value);
      who.owns_ = false;
      who.generation_ = generation_ - 1;
    }
  }
  /// Called by an admitted reader once it runs. False if its admission was revoked.
  [[nodiscard]] bool confirm(const lock_waiter& who) noexcept {
    if (who.owns()) {
      return true;
    }
    if (who.generation_ != generation_) {
      return false;
    }
    --count_;
    return true;
  }
  /// Returns whether all of these readers are admitted ones that have not run yet.
  [[nodiscard]] bool are_all(std::size_t readers) const noexcept { return count_ != 0 && count_ == readers; }
  void revoke() noexcept {
    count_ = 0;
    ++generation_;
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t generation_ = 0;  ///< incremented by each revocation
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
