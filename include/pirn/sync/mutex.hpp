// A lock that suspends fibers and blocks plain threads.
#pragma once

#include "pirn/fiber/detail/current_fiber.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/sync/detail/std_forms.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Which caller gets a mutex that is unlocked while others wait for it.
enum class mutex_policy : std::uint8_t {
  /// The longest waiter. A fiber of the worker that unlocks gets it at once (but see `try_lock`). Any other waiter is
  /// woken, and callers that come before it runs may bypass it, four times at most.
  fair,
  barging,  ///< the first caller to come; the longest waiter is woken to try again. More locks per second
};

/// A mutual exclusion lock; not recursive. Works with std::lock_guard, std::unique_lock and std::scoped_lock. Fibers of
/// any worker and plain threads share it. An owner that knows that no other caller will use it may unlock and destroy
/// it, even while the previous owner's unlock has not returned yet.
class mutex : detail::owner_mark, public detail::timed_lock<mutex> {
 public:
  constexpr mutex() noexcept : mutex(mutex_policy::fair) {}
  constexpr explicit mutex(mutex_policy policy) noexcept : policy_(policy) {}
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Locks the mutex. Suspension point. Not ended by a stop, since std::lock_guard could not tell.
  PIRN_ALWAYS_INLINE void lock() noexcept {
    if (!lock_if_free()) [[unlikely]] {
      static_cast<void>(
          lock_slow({.stoppable = false, .wakeable_by = awaited::holder, .what = "mutex", .object = mark()}));
    }
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A free mutex is locked in any case.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    if (lock_if_free()) [[likely]] {
      return {};
    }
    return lock_slow({.deadline = deadline, .wakeable_by = awaited::holder, .what = "mutex", .object = mark()});
  }
  /// Tries to lock the mutex, also one handed off to a waiter that has not run since: otherwise callers that try
  /// several and back off (std::scoped_lock) might never succeed. A waiter is bypassed in this way four times at most;
  /// until it runs, others may come before it. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_lock() noexcept { return lock_if_free() || take_handed_off(); }
  /// Unlocks; for the owner only (aborts when it is not locked). Does not suspend.
  PIRN_ALWAYS_INLINE void unlock() noexcept {
    std::uintptr_t holder = owner_.load(platform::memory_order_relaxed);
    if (static_cast<std::intptr_t>(holder) <= 0 ||  // contended, or unlocked
        !owner_.replace_read(holder, unlocked, platform::memory_order_release)) [[unlikely]] {
      unlock_slow();
    }
  }

 private:
  // The word is the owner. A caller that is about to wait sets `contended_bit` under the queue's lock. An owner that
  // finds the queue empty clears it under that lock. So an unlock that does not find the bit has no waiter to wake.
  static constexpr std::uintptr_t unlocked = 0;
  static constexpr std::uintptr_t handed_off = 2;  ///< to a waiter that has not run yet

  [[nodiscard]] PIRN_ALWAYS_INLINE bool lock_if_free() noexcept {
    std::uintptr_t expected = unlocked;
    return owner_.compare_exchange_strong(expected, caller(), platform::memory_order_acquire,
                                          platform::memory_order_relaxed);
  }
  /// Spins for some hundred nanoseconds for a mutex whose owner runs elsewhere, as long as no caller waits: most owners
  /// hold a mutex for less than a wait takes.
  [[nodiscard]] bool lock_if_free_soon() noexcept;
  static constexpr int max_spins = 40;
  [[nodiscard]] bool take_handed_off() noexcept;
  std::expected<void, wait_error> lock_slow(const wait_options& options) noexcept;
  void unlock_slow() noexcept;

  const mutex_policy policy_;
  wait_queue waiters_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
