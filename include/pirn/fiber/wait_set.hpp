// One wait in several lists at once: what select is built on.
#pragma once

#include "pirn/fiber/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// One of the lists that a wait is in, and the waiter there; lives on the stack of the waiter.
struct wait_entry {
  platform::spinlock* lock;  ///< guards the list; null for one of a single worker
  wait_list* list;
  const detail::one_worker* home = nullptr;  ///< of such a list
  wait_entry* next = nullptr;                ///< of the same wait, in the order of the locks
  waiter node = {};  ///< `value` is what a notifier of this list finds; `claimed` says that it was this list
};

/// The entries of one wait. All waiters share its epoch: whoever claims one of them has ended the wait, and claims of
/// the others fail. Used by the fiber or thread that waits.
class wait_set {
 public:
  /// O(n). Neither `entry` nor its list may go before the last wait has returned.
  void add(wait_entry& entry) noexcept;

  /// Takes the locks of all lists, each once, in the order of their addresses: so two waits that meet on the same locks
  /// cannot each hold what the other one wants. Aborts where a list is another worker's.
  void lock() noexcept;
  void unlock() noexcept;

  /// As `wait_list::wait`, in all the lists; the locks must be held and are released once the caller is switched out.
  /// The wait is stoppable. On return no list has a waiter of this wait any more; if notified, exactly one entry is
  /// `claimed`, and neither its list nor its lock has been touched since. Aborts in a migratable fiber if a list is of
  /// a single worker. O(n).
  [[nodiscard]] wake_reason wait(wait_options options) noexcept;

  /// The parts of `wait` around the suspension, for a waiter that suspends by other means: appends it to all the lists,
  /// with the locks held, and removes it from those whose node was not claimed, with none held.
  void append(const waker& who) noexcept;
  void remove_after_wait() noexcept;

 private:
  wait_entry* first_ = nullptr;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
