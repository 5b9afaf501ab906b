// What the twins of pirn/sync/local.hpp are built on.
#pragma once

#include <cstddef>
#include <expected>

#include "pirn/fiber/wait_queue.hpp"

namespace pirn::inline PIRN_ABI {

namespace detail {

/// The waiters of something local, and whose it is.
class local_queue {
 public:
  /// First in every call.
  PIRN_ALWAYS_INLINE void enter() const noexcept { home_.lock(); }
  [[noreturn]] void refuse(const char* what) const noexcept { home_.refuse(what); }

  /// Suspends the caller until it is woken, stopped or its deadline passes.
  [[nodiscard]] std::expected<void, wait_error> wait(const wait_options& options) noexcept;
  /// Wakes the one that has waited longest, to whom the caller hands what it waited for. False if nobody waits. `back`
  /// puts it behind all that are ready.
  PIRN_ALWAYS_INLINE bool wake_first(bool back = false) noexcept { return !waiters_.empty() && wake_first_slow(back); }
  /// How many that were. O(n).
  std::size_t wake_all() noexcept;
  /// False also where all that are in it are about to leave.
  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }

  /// For a wait in several queues at once (`wait_places`).
  [[nodiscard]] const one_worker& home() const noexcept { return home_; }
  [[nodiscard]] wait_list& list() noexcept { return waiters_; }

 private:
  bool wake_first_slow(bool back) noexcept;

  one_worker home_;
  wait_list waiters_;
};

}  // namespace detail

}  // namespace pirn::inline PIRN_ABI
