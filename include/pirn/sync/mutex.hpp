// A lock that suspends fibers and blocks plain threads.
#pragma once

#include "pirn/fiber/detail/owner_mark.hpp"
#include "pirn/sync/detail/std_forms.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Who gets a mutex that is unlocked while others wait for it.
enum class mutex_policy : std::uint8_t {
  /// The one that has waited longest: at once if it is a fiber of the worker that unlocks (but see `try_lock`); else it
  /// is woken, and whoever comes before it runs may overtake it, four times at most.
  fair,
  barging,  ///< whoever comes first; the one that has waited longest is woken to try again. More locks per second
};

/// A mutual exclusion lock; not recursive. Works with std::lock_guard, std::unique_lock and std::scoped_lock. Fibers of
/// any worker and plain threads share it. An owner who knows that nobody else will use it may unlock and destroy it,
/// even while the unlock of the owner before has not returned yet.
class mutex : detail::owner_mark, public detail::timed_lock<mutex> {
 public:
  constexpr mutex() noexcept : mutex(mutex_policy::fair) {}
  constexpr explicit mutex(mutex_policy policy) noexcept : policy_(policy) {}
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Suspension point. Not ended by a stop, since std::lock_guard could not tell.
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
  /// Takes also a lock that was handed to somebody who has not run since: only so do those that try several and back
  /// off (std::scoped_lock) get on. Who waits loses it so four times at most; until it runs, others may come before it.
  /// Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_lock() noexcept { return lock_if_free() || take_handed_off(); }
  /// The owner only (aborts when nobody owns it). Does not suspend.
  PIRN_ALWAYS_INLINE void unlock() noexcept {
    std::uintptr_t holder = owner_.load(platform::memory_order_relaxed);
    if (static_cast<std::intptr_t>(holder) <= 0 ||  // contended, or unlocked
        !owner_.replace_read(holder, unlocked, platform::memory_order_release)) [[unlikely]] {
      unlock_slow();
    }
  }

 private:
  // The word is its owner. `contended_bit` is set under the queue's lock by who is about to wait, and taken back under
  // it by an owner who finds the queue empty: so an unlock that does not find it has nobody to wake.
  static constexpr std::uintptr_t unlocked = 0;
  static constexpr std::uintptr_t handed_off = 2;  ///< to who waited, and has not run yet

  [[nodiscard]] PIRN_ALWAYS_INLINE bool lock_if_free() noexcept {
    std::uintptr_t expected = unlocked;
    return owner_.compare_exchange_strong(expected, caller(), platform::memory_order_acquire,
                                          platform::memory_order_relaxed);
  }
  /// Looks for some hundred nanoseconds whether an owner who runs elsewhere lets go, as long as nobody waits: most hold
  /// a mutex for less than a wait takes.
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
