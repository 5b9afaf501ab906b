// A lock that costs the fibers of one worker no atomic operation.
#pragma once

#include "pirn/fiber/detail/current_fiber.hpp"
#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A mutual exclusion lock for data that the fibers of one worker use nearly always, and others now and then. Not
/// recursive; works with std::lock_guard, std::unique_lock and std::scoped_lock. The first fiber that locks it biases
/// it towards its worker, whose fibers then lock and unlock it by plain loads and stores. A caller from elsewhere ends
/// that permanently: from then on it is an ordinary lock, which costs about as much as a `mutex`. To end it, a
/// migratable fiber moves to the worker; a pinned one and a plain thread interrupt all threads of the process once
/// (`heavy_fence`). Hands off as a fair `mutex` does. After Dolan, Muralidharan and Gregg 2013, "Compiler support for
/// lightweight context switching", 6.3; the revocation by others is an asymmetric Dekker (Dice, Huang and Yang 2001).
///
/// Unlike a `mutex` it must outlive the return of every unlock. docs/sync.md has its states.
class biased_mutex : detail::owner_mark, public detail::timed_lock<biased_mutex> {
 public:
  biased_mutex() noexcept = default;
  biased_mutex(const biased_mutex&) = delete;
  biased_mutex& operator=(const biased_mutex&) = delete;

  /// Locks the mutex. Suspension point; afterwards a migratable fiber may be on the lock's worker. Not ended by a stop,
  /// since std::lock_guard could not tell.
  PIRN_ALWAYS_INLINE void lock() noexcept {
    if (!lock_at_once()) [[unlikely]] {
      static_cast<void>(lock_slow({.stoppable = false}));
    }
    mark_owner();
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A free mutex is locked in any case.
  /// With a deadline no fiber moves.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    const auto locked = lock_at_once() ? std::expected<void, wait_error>{} : lock_slow({.deadline = deadline});
    if (locked) [[likely]] {
      mark_owner();
    }
    return locked;
  }
  /// Tries to lock the mutex, also one handed off to a waiter that has not run since, as that of `mutex`. Never
  /// suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_lock() noexcept {
    const bool locked = lock_at_once() || try_lock_slow();
    if (locked) {
      mark_owner();
    }
    return locked;
  }
  /// Unlocks; for the owner only (aborts when it is not locked), on whatever worker it is now. Does not suspend.
  PIRN_ALWAYS_INLINE void unlock() noexcept {
    forget_owner();
    const std::uintptr_t here = this_worker();
    const std::uintptr_t bias = bias_.load(platform::memory_order_acquire);
    if (bias == here && flag_.load(platform::memory_order_relaxed) == taken) [[likely]] {
      flag_.store(free, platform::memory_order_release);
      platform::light_fence();  // pairs with that in `take`: a revoker sees the flag down, or is given way to
      if (bias_.load(platform::memory_order_relaxed) != here) [[unlikely]] {
        give_way();
      }
      return;
    }
    std::uint8_t expected = taken;
    if (bias != shared || !word_.compare_exchange_strong(expected, free, platform::memory_order_release,
                                                         platform::memory_order_relaxed)) [[unlikely]] {
      unlock_slow();
    }
  }

  /// Returns whether the mutex is biased towards a worker. A hint.
  [[nodiscard]] bool biased() const noexcept { return is_biased(bias_.load(platform::memory_order_relaxed)); }

 private:
  // The bias is one of these, or the address of a worker, to which `revoking` may be added. It changes under the
  // queue's lock only.
  static constexpr std::uintptr_t revoking = 1;
  static constexpr std::uintptr_t shared = 2;  ///< permanently
  static constexpr std::uintptr_t nobody = 4;  ///< never locked
  static constexpr bool is_biased(std::uintptr_t bias) noexcept { return bias > nobody && (bias & revoking) == 0; }

  // Flag and word are one of these. The flag counts while the lock is biased or being revoked. It goes up on the thread
  // of the lock's worker only, and comes down there or, if the owner has migrated, under the queue's lock. The word
  // counts when the lock is shared: `contended` and `handed_off` are set and cleared under the queue's lock. They are
  // two variables, since the worker may be late with a store to the flag that it takes back at once.
  static constexpr std::uint8_t free = 0;
  static constexpr std::uint8_t taken = 1;
  static constexpr std::uint8_t contended = 2;   ///< taken, and callers may wait
  static constexpr std::uint8_t handed_off = 3;  ///< to a waiter that has not run yet

  /// Returns null, which no bias is, on a plain thread.
  [[nodiscard]] static PIRN_ALWAYS_INLINE std::uintptr_t this_worker() noexcept {
    return reinterpret_cast<std::uintptr_t>(platform::current_worker());
  }
  /// Locks the mutex if it is free, and biased towards the caller's worker or shared.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool lock_at_once() noexcept {
    const std::uintptr_t here = this_worker();
    // Acquire: a caller that finds it shared finds the word as it was then.
    const std::uintptr_t bias = bias_.load(platform::memory_order_acquire);
    if (bias == here) [[likely]] {
      return lock_here(here);
    }
    std::uint8_t expected = free;
    return bias == shared && word_.compare_exchange_strong(expected, taken, platform::memory_order_acquire,
                                                           platform::memory_order_relaxed);
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool lock_here(std::uintptr_t here) noexcept {
    if (flag_.load(platform::memory_order_acquire) != free) [[unlikely]] {  // acquire: its last owner may have migrated
      return false;
    }
    flag_.store(taken, platform::memory_order_relaxed);
    // Pairs with the heavy fence in `take`: here the flag goes up and then the bias is read. The revoker stores
    // `revoking` and then, behind a heavy fence, reads the flag.
    platform::light_fence();
    if (bias_.load(platform::memory_order_relaxed) == here) [[likely]] {
      return true;
    }
    // Release: a revoker may see this as the end of what the flag stood for before.
    flag_.store(free, platform::memory_order_release);
    give_way();
    return false;
  }

  std::expected<void, wait_error> lock_slow(wait_options&& options) noexcept;
  bool try_lock_slow() noexcept;
  void unlock_slow() noexcept;
  void give_way() noexcept;
  [[nodiscard]] bool go_to_its_worker() const noexcept;
  void unbias_here() noexcept;
  [[nodiscard]] bool take() noexcept;
  [[nodiscard]] bool take_handed_off() noexcept;
  [[nodiscard]] waiter* hand_off(platform::atomic<std::uint8_t>& state) noexcept;

  platform::atomic<std::uintptr_t> bias_{nobody};
  platform::atomic<std::uint8_t> flag_{free};
  platform::atomic<std::uint8_t> word_{free};
  wait_queue waiters_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
