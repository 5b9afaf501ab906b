// The fair hand-off of locks and permits: the one protocol of mutex, recursive_mutex, shared_mutex, biased_mutex and
// counting_semaphore, in both domains.
#pragma once

#include "pirn/fiber/detail/control.hpp"
#include "pirn/fiber/detail/worker.hpp"
#include "pirn/sync/detail/domain.hpp"
#include "pirn/sync/detail/lock_waiter.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Completes the options of a wait for the holder of a lock, by its name as a local one and its owner mark.
template <class Domain>
PIRN_ALWAYS_INLINE const wait_options& for_holder(wait_options& options, const char* what, const void* mark) noexcept {
  options.wakeable_by = Domain::is_local ? awaited::anybody : awaited::holder;
  options.what = name_of<Domain>(what);
  options.object = mark;
  return options;
}

/// The decision of an unlock, made with the queue's lock held. `hand_off_queue` explains the variants.
struct unlock_decision {
  enum class kind : std::uint8_t { wake_to_retry, handed_off, granted };

  waiter* next;  ///< the claimed waiter, to be made runnable after the lock is released; null if the list is empty
  kind made;     ///< about that waiter

  /// Returns the state of the lock that goes with the decision.
  template <class State>
  [[nodiscard]] State choose(State free, State handed_off, State granted) const noexcept {
    return made == kind::granted ? granted : made == kind::handed_off ? handed_off : free;
  }
};

/// A view of a list of waiters, each with a `lock_waiter`, and of the lock that guards the list and the state of the
/// primitive.
///
/// An unlock claims the longest waiter and decides:
/// - `granted`, if the waiter was bypassed four times (`bypass_limit_reached`). No call can take the lock from it.
/// - `handed_off`, if the waiter runs next on this worker. The lock is not free in between, so no `lock` overtakes the
///   waiter. But a `try_lock` may take the lock before the waiter runs, which is a bypass: see `lock_waiter`.
/// - `wake_to_retry`, if the waiter runs elsewhere. A lock that was handed to it would lie idle for the length of a
///   wake-up, a thousand times as long as most locks are held. So the lock is free, and any caller may take it before
///   the waiter runs. That is a bypass too.
/// A waiter that runs confirms what it was handed, or tries again. If it was bypassed, it counts that, and waits again,
/// in front of the others.
///
/// Invariants: The lock is free while waiters are in the list only after `wake_to_retry`. The woken waiter then has not
/// run yet; before it owns the lock or waits, it marks the lock as contended for the others. So each waiter has a
/// holder or a woken waiter before it that will see it. An unlock after `bypass_limit` bypasses grants the lock, so no
/// waiter starves. In the local domain `wake_to_retry` does not occur.
///
/// Bypasses until one waiter has had too many: as in the mutex of Linux (MUTEX_FLAG_HANDOFF), the locks of WebKit
/// (eventual fairness) and the mutex of Go (starvation mode), which measure by wake-ups or by time.
template <class Domain>
class hand_off_queue {
 public:
  hand_off_queue(typename Domain::lock& lock, wait_list& waiters) noexcept : lock_(lock), waiters_(waiters) {}
  explicit hand_off_queue(typename Domain::queue& queue) noexcept : hand_off_queue(queue.own_lock(), queue.list()) {}

  /// Suspends the caller until it owns the lock, or until `options` end the wait. `take_or_mark()` is called with the
  /// queue's lock held: it takes the lock if it is free, and marks it as contended otherwise. `confirm(me)` is called
  /// without, after each wake-up: it returns whether `me.owns()`, or the lock that was handed off is still there.
  /// Inlined, since a processor mispredicts each return behind a switch.
  template <class TakeOrMark, class Confirm>
  PIRN_ALWAYS_INLINE std::expected<void, wait_error> wait(const wait_options& options, const TakeOrMark& take_or_mark,
                                                          const Confirm& confirm, lock_waiter me = {},
                                                          wait_order order = wait_order::fifo) noexcept {
    for (;;) {
      lock_.lock();
      if (take_or_mark()) {
        lock_.unlock();
        return {};
      }
      if (const wake_reason reason = me.wait(waiters_, lock_, options, order); reason != wake_reason::notified) {
        return std::unexpected(error_of(reason));
      }
      if (confirm(me)) {
        return {};
      }
      me.count_bypass();
    }
  }

  /// Claims the longest waiter and decides about it. The caller must set the state of the lock, release the queue's
  /// lock, and make the waiter runnable.
  [[nodiscard]] unlock_decision hand_off() noexcept { return hand_off_to(waiters_.claim_first()); }
  /// As the overload above, for the waiter that is next by a rule.
  [[nodiscard]] PIRN_ALWAYS_INLINE unlock_decision hand_off(waiting_rule& rule) noexcept {
    return hand_off_to(rule.claim_next(waiters_));
  }
  /// As `hand_off`, but the decision is `wake_to_retry`, for locks that are not fair.
  [[nodiscard]] unlock_decision wake_to_retry(waiting_rule& rule) noexcept {
    return {rule.claim_next(waiters_), unlock_decision::kind::wake_to_retry};
  }

  /// Returns whether claimed waiters are to be woken to retry, all of them: if some run elsewhere, and none has reached
  /// its bypass limit.
  [[nodiscard]] static bool are_to_retry(const waiter* chain) noexcept {
    bool elsewhere = false;
    bool limit_reached = false;
    for (const waiter* w = chain; w != nullptr; w = w->next) {
      elsewhere = elsewhere || !runs_here_next(*w);
      limit_reached = limit_reached || lock_waiter::bypass_limit_reached(*w);
    }
    return elsewhere && !limit_reached;
  }

 private:
  [[nodiscard]] static PIRN_ALWAYS_INLINE unlock_decision hand_off_to(waiter* next) noexcept {
    using kind = unlock_decision::kind;
    if (next == nullptr) {
      return {nullptr, kind::wake_to_retry};
    }
    next->next = nullptr;
    return {next, lock_waiter::try_grant(*next) ? kind::granted
                  : runs_here_next(*next)       ? kind::handed_off
                                                : kind::wake_to_retry};
  }
  /// Returns whether a lock lies idle for no longer if it is handed to `w`: at most other fibers of this worker run
  /// before it. Any other waiter, a thread most of all, may take a thousand times as long to run as the lock is held.
  [[nodiscard]] static bool runs_here_next(const waiter& w) noexcept {
    const agent& who = *w.wake.agent();
    return Domain::is_local ||
           (who.kind() == agent_kind::fiber && static_cast<const fiber_control&>(who).home() == current_worker());
  }

  typename Domain::lock& lock_;
  wait_list& waiters_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
