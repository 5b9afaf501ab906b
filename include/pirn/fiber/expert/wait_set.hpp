// One wait in several lists at once: the basis of select.
#pragma once

#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// One of the lists that a wait is in, and the waiter there; lies on the waiter's stack.
struct wait_entry {
  platform::spinlock* lock;                  ///< guards the list; null for a list of one worker
  wait_list* list;                           ///< the list
  const detail::one_worker* home = nullptr;  ///< of a list of one worker
  wait_entry* next = nullptr;                ///< of the same wait, in the order of the locks
  waiter node = {};       ///< a notifier of this list finds `value`; `claimed` says that it was this list
  bool in_front = false;  ///< waits before those that are in the list, as where the youngest is woken first
};

/// The entries of one wait. All waiters share its epoch: a claim of one of them ends the wait, and claims of the others
/// fail. Used by the fiber or thread that waits.
class wait_set {
 public:
  /// Adds an entry. O(n). Neither `entry` nor its list may be destroyed before the last wait has returned.
  void add(wait_entry& entry) noexcept;

  /// Takes the locks of all lists, each once, in the order of their addresses, so that of two waits neither can hold a
  /// lock that the other one wants. Aborts if a list belongs to another worker.
  void lock() noexcept;
  /// Releases the locks that `lock` took.
  void unlock() noexcept;

  /// As `wait_list::wait`, but in all the lists; the locks must be held and are released once the caller is switched
  /// out. The wait is stoppable. On return no list has a waiter of this wait any more. If notified, exactly one entry
  /// is `claimed`, and neither its list nor its lock has been touched since. Aborts in a migratable fiber if a list is
  /// of one worker. O(n).
  [[nodiscard]] wake_reason wait(wait_options options) noexcept;

  /// The steps of `wait`, which are those of `detail::wait_entries`. `append` adds the waiter to all the lists, where
  /// its entries say, with the locks held; `remove_after_wait` removes it from those whose node was not claimed, with
  /// none held.
  void append(const waker& who) noexcept;
  /// Returns a function that calls `unlock`.
  [[nodiscard]] auto publisher() noexcept {
    return [this] { unlock(); };
  }
  /// As `unlock`, for a wait that a stop has refused.
  void unlock_unpublished() noexcept { unlock(); }
  /// Undoes `append` after the wait, as that says. Returns why the wait of `self` has ended.
  wake_reason remove_after_wait(const detail::agent& self) noexcept;

 private:
  wait_entry* first_ = nullptr;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
