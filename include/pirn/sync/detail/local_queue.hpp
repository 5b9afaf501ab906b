// The queue under the twins of pirn/sync/expert/local.hpp.
#pragma once

#include <cstddef>
#include <expected>

#include "pirn/fiber/detail/one_worker.hpp"
#include "pirn/sync/detail/lock_waiter.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// The state of a lock. A lock that was `handed_off` goes to its waiter or to a `try_lock`, whichever runs first.
enum class local_lock_state : std::uint8_t { free, taken, handed_off };

/// The waiters of a local object, and its worker.
class local_queue {
 public:
  /// Must come first in every call.
  PIRN_ALWAYS_INLINE void enter() const noexcept { home_.lock(); }
  [[noreturn]] void refuse(const char* what) const noexcept { home_.refuse(what); }

  /// Suspends the caller until it is woken, stopped or its deadline passes.
  [[nodiscard]] std::expected<void, wait_error> wait(const wait_options& options) noexcept;
  /// As `wait`, but until the caller owns `lock`. The lock is not free either while it has readers.
  [[nodiscard]] std::expected<void, wait_error> wait_to_own(local_lock_state& lock, const wait_options& options,
                                                            const std::size_t& readers = no_readers) noexcept;
  /// Wakes the longest waiter; the caller hands it the thing that it waited for. False if there is no waiter. `back`
  /// puts it behind all ready fibers.
  PIRN_ALWAYS_INLINE bool wake_first(bool back = false) noexcept { return !waiters_.empty() && wake_first_slow(back); }
  /// Hands a lock off to the longest waiter. Returns the lock's new state.
  PIRN_ALWAYS_INLINE local_lock_state hand_off() noexcept {
    return waiters_.empty() ? local_lock_state::free : hand_off_slow();
  }
  /// Wakes all waiters. Returns their number. O(n).
  std::size_t wake_all() noexcept;
  /// Admits all waiting readers. Returns their number. O(n).
  std::size_t admit(admitted_readers& readers) noexcept;
  /// Returns whether the queue is empty. False also if all its waiters are about to leave.
  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }

  /// For a wait in several queues at once (`wait_set`).
  [[nodiscard]] const one_worker& home() const noexcept { return home_; }
  [[nodiscard]] wait_list& list() noexcept { return waiters_; }

 private:
  bool wake_first_slow(bool back) noexcept;
  local_lock_state hand_off_slow() noexcept;

  static constexpr std::size_t no_readers = 0;

  one_worker home_;
  wait_list waiters_;
};

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
