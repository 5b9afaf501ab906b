// What the twins of pirn/sync/local.hpp are built on.
#pragma once

#include <cstddef>
#include <expected>

#include "pirn/sync/detail/lock_waiter.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// Of a lock. What was `handed_off` is taken by `try_lock` or by who it was handed to, whoever runs first.
enum class local_lock_state : std::uint8_t { free, taken, handed_off };

/// The waiters of something local, and whose it is.
class local_queue {
 public:
  /// First in every call.
  PIRN_ALWAYS_INLINE void enter() const noexcept { home_.lock(); }
  [[noreturn]] void refuse(const char* what) const noexcept { home_.refuse(what); }

  /// Suspends the caller until it is woken, stopped or its deadline passes.
  [[nodiscard]] std::expected<void, wait_error> wait(const wait_options& options) noexcept;
  /// The same for a lock, until that is the caller's; it is not free either while it has readers.
  [[nodiscard]] std::expected<void, wait_error> wait_to_own(local_lock_state& lock, const wait_options& options,
                                                            const std::size_t& readers = no_readers) noexcept;
  /// Wakes the one that has waited longest, to whom the caller hands what it waited for. False if nobody waits. `back`
  /// puts it behind all that are ready.
  PIRN_ALWAYS_INLINE bool wake_first(bool back = false) noexcept { return !waiters_.empty() && wake_first_slow(back); }
  /// The same for those who wait to own a lock. The result is its state then.
  PIRN_ALWAYS_INLINE local_lock_state hand_off() noexcept {
    return waiters_.empty() ? local_lock_state::free : hand_off_slow();
  }
  /// How many that were. O(n).
  std::size_t wake_all() noexcept;
  /// Admits all waiting readers. Returns their number. O(n).
  std::size_t admit(admitted_readers& readers) noexcept;
  /// False also where all that are in it are about to leave.
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
