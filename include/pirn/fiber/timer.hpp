// Timers of one worker: a pairing heap (Fredman, Sedgewick, Sleator and Tarjan 1986) of nodes that live on the stacks
// of the waiters. It is lazy: what is inserted, and what a cancelled timer had below it, lies among the roots until
// somebody asks for the nearest one, so that a deadline which is met before the worker next looks is never compared.
#pragma once

#include "pirn/fiber/wait_queue.hpp"

namespace pirn::inline PIRN_ABI {

/// A deadline that wakes one wait with `wake_reason::timed_out`. Lives on the waiter's stack; must be cancelled (or
/// have fired) before it is destroyed.
struct timer {
  platform::time_point when;
  waker wake;  ///< of nobody for a `call_timer`
  timer* child = nullptr;
  timer* next = nullptr;      ///< of the ring of siblings; null while it is not pending
  timer* previous = nullptr;  ///< of the ring
  timer* parent = nullptr;    ///< of the one of a ring that the parent points to, else null

  [[nodiscard]] bool armed() const noexcept { return next != nullptr; }
};

/// A timer that calls instead. The call comes from the worker's scheduler: it must not suspend.
struct call_timer : timer {
  void (*call)(call_timer&) noexcept = nullptr;
};

/// The pending timers of a worker, used by that worker only.
class timer_queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return roots_ == nullptr; }
  /// When the next timer is due, or `never`. Amortised O(log n) for each one that has fired or was cancelled since.
  [[nodiscard]] platform::time_point next() noexcept;
  /// O(1).
  void insert(timer& t) noexcept;
  /// O(1); does nothing to a timer that has fired.
  void cancel(timer& t) noexcept;
  /// Wakes what is due at `now`, in order of time. Amortised O(log n) each.
  void fire(platform::time_point now) noexcept;

 private:
  void add_roots(timer* ring) noexcept;
  void take_out(timer& t) noexcept;
  void merge_roots() noexcept;

  timer* roots_ = nullptr;  ///< one of the ring of roots
};

}  // namespace pirn::inline PIRN_ABI
