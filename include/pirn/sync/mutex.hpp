// A lock that suspends fibers and blocks plain threads.
#pragma once

#include "pirn/fiber/detail/current_fiber.hpp"
#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Which caller gets a mutex that is unlocked while others wait for it.
enum class mutex_policy : std::uint8_t {
  /// The longest waiter. A fiber of the worker that unlocks gets it at once (but see `try_lock`). Any other waiter is
  /// woken, and callers that come before it runs may bypass it, four times at most.
  fair,
  barging,  ///< the first caller to come; the longest waiter is woken to try again. More locks per second
};

namespace detail {

template <class Domain>
class basic_mutex : Domain::owner_mark, public timed_lock<basic_mutex<Domain>> {
 public:
  constexpr basic_mutex() noexcept : basic_mutex(mutex_policy::fair) {}
  constexpr explicit basic_mutex(mutex_policy policy, wait_policy waiting = {}) noexcept
      : policy_(policy), rule_(waiting) {}
  constexpr explicit basic_mutex(wait_policy waiting) noexcept : basic_mutex(mutex_policy::fair, waiting) {}
  basic_mutex(const basic_mutex&) = delete;
  basic_mutex& operator=(const basic_mutex&) = delete;

  /// Locks the mutex. Suspension point. Not ended by a stop, since std::lock_guard could not tell.
  PIRN_ALWAYS_INLINE void lock() noexcept {
    if (!lock_if_free()) [[unlikely]] {
      [[maybe_unused]] const auto locked = lock_slow({.stoppable = false});
    }
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A free mutex is locked in any case.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    if (lock_if_free()) [[likely]] {
      return {};
    }
    return lock_slow({.deadline = deadline});
  }
  /// Tries to lock the mutex, also one handed off to a waiter that has not run since: otherwise callers that try
  /// several and back off (std::scoped_lock) might never succeed. A waiter is bypassed in this way four times at most;
  /// until it runs, others may come before it. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_lock() noexcept { return lock_if_free() || take_handed_off(); }
  /// Unlocks; for the owner only (aborts when it is not locked). Does not suspend, unless its policy is `switch_over`.
  PIRN_ALWAYS_INLINE void unlock() noexcept {
    Domain::enter(waiters_);
    std::uintptr_t holder = owner_.load(platform::memory_order_relaxed);
    if (static_cast<std::intptr_t>(holder) <= 0 ||  // contended, or unlocked
        !owner_.replace_read(holder, unlocked, platform::memory_order_release)) [[unlikely]] {
      unlock_slow();
    }
  }

 private:
  template <class>
  friend class basic_recursive_mutex;

  // The word is the owner. A caller that is about to wait sets `contended_bit` under the queue's lock. An owner that
  // finds the queue empty clears it under that lock. So an unlock that does not find the bit has no waiter to wake.
  using owner = typename Domain::owner_mark;
  using owner::contended_bit;
  using owner::no_fiber;
  using owner::owner_;
  static constexpr std::uintptr_t unlocked = 0;
  static constexpr std::uintptr_t handed_off = 2;  ///< to a waiter that has not run yet

  [[nodiscard]] PIRN_ALWAYS_INLINE bool lock_if_free() noexcept {
    Domain::enter(waiters_);
    std::uintptr_t expected = unlocked;
    return owner_.compare_exchange_strong(expected, owner::caller(), platform::memory_order_acquire,
                                          platform::memory_order_relaxed);
  }
  /// Spins for some hundred nanoseconds for a mutex whose owner runs elsewhere, as long as no caller waits: most owners
  /// hold a mutex for less than a wait takes.
  [[nodiscard]] PIRN_DEFINED_ONCE bool lock_if_free_soon() noexcept;
  static constexpr int max_spins = 40;
  [[nodiscard]] PIRN_DEFINED_ONCE bool take_handed_off() noexcept;
  PIRN_DEFINED_ONCE std::expected<void, wait_error> lock_slow(wait_options&& options) noexcept;
  PIRN_DEFINED_ONCE void unlock_slow() noexcept;

  const mutex_policy policy_;
  waiting_rule rule_;
  typename Domain::queue waiters_;
};

extern template class basic_mutex<shared_domain>;

}  // namespace detail

/// A mutual exclusion lock; not recursive. Works with std::lock_guard, std::unique_lock and std::scoped_lock. Fibers of
/// any worker and plain threads share it. An owner that knows that no other caller will use it may unlock and destroy
/// it, even while the previous owner's unlock has not returned yet.
class mutex : public detail::basic_mutex<detail::shared_domain> {
 public:
  using basic_mutex::basic_mutex;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
