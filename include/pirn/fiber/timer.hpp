// Timers of one worker: a pairing heap (Fredman, Sedgewick, Sleator and Tarjan 1986) of nodes that live on the stacks
// of the waiters.
#pragma once

#include "pirn/fiber/wait_queue.hpp"

namespace pirn::inline PIRN_ABI {

/// A deadline that wakes one wait with `wake_reason::timed_out`. Lives on the waiter's stack; must be cancelled (or
/// have fired) before it is destroyed.
struct timer {
  platform::time_point when;
  waker wake;
  timer* child = nullptr;
  timer* sibling = nullptr;
  timer* back = nullptr;  ///< the parent of a first child, else the elder sibling
  bool armed = false;
};

/// The pending timers of a worker, used by that worker only.
class timer_queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  /// When the next timer is due, or `never`.
  [[nodiscard]] platform::time_point next() const noexcept { return root_ != nullptr ? root_->when : platform::never; }
  /// O(1).
  void insert(timer& t) noexcept;
  /// Amortised O(log n); does nothing to a timer that has fired.
  void cancel(timer& t) noexcept;
  /// Wakes what is due at `now`, in order of time. Amortised O(log n) each.
  void fire(platform::time_point now) noexcept;

 private:
  static timer* meld(timer* a, timer* b) noexcept;
  static timer* merge_pairs(timer* first) noexcept;
  void pop() noexcept;

  timer* root_ = nullptr;
};

}  // namespace pirn::inline PIRN_ABI
