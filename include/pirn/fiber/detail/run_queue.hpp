// The run queue of one worker, used by that worker only.
#pragma once

#include <cstddef>

#include "pirn/fiber/detail/control.hpp"
#include "pirn/fiber/detail/current_fiber.hpp"
#include "pirn/fiber/detail/fairness.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A ring that holds the running node and, after it in order of age, the ready ones: a yield is one load and one store.
/// Fibers just woken go to a stack beside the ring and run first, newest first, since their data is in the processor's
/// cache; but at most `lifo_turns` of them run in a row while another fiber is ready. Then a fiber of the ring runs,
/// and all on the stack but the newest go into the ring, so that no fiber starves. Fibers of high priority have a
/// separate list, first in first out, and run before all others, but at most `high_priority_turns` of them in a row
/// while another one is ready. The scheduler's own node is in the ring only while it runs.
class run_queue {
 public:
  run_queue(unsigned lifo_turns, unsigned high_priority_turns) noexcept
      : now_{&scheduler_}, woken_turns_(lifo_turns), next_(&scheduler_), high_turns_(high_priority_turns) {
    scheduler_.next = scheduler_.previous = &scheduler_;
  }
  run_queue(const run_queue&) = delete;
  run_queue& operator=(const run_queue&) = delete;

  [[nodiscard]] PIRN_ALWAYS_INLINE run_node* running() const noexcept { return now_.running; }
  [[nodiscard]] run_node* scheduler() noexcept { return &scheduler_; }
  [[nodiscard]] const run_node* scheduler() const noexcept { return &scheduler_; }
  /// Whether the running node is a fiber, and not the scheduler.
  [[nodiscard]] bool runs_fiber() const noexcept { return now_.running != &scheduler_; }
  /// Returns the offset of the scheduler's node in the queue.
  static constexpr std::size_t scheduler_offset() noexcept { return offsetof(run_queue, scheduler_); }
  /// Returns nonzero if woken fibers or some of high priority are ready, or the running one is of high priority.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t woken() const noexcept {
    return reinterpret_cast<std::uintptr_t>(woken_);
  }
  /// Whether anything but the running node is ready.
  [[nodiscard]] bool has_ready() const noexcept { return has_woken() || next_ != now_.running || high_ != nullptr; }

  /// Queues it behind all ready fibers of its priority.
  PIRN_ALWAYS_INLINE void push(fiber_control* f) noexcept {
    if (f->has_high_priority()) [[unlikely]] {
      push_high(f);
    } else {
      push_back(f);
    }
  }
  /// As `push`, for a node that is known to be of high priority.
  PIRN_ASIDE PIRN_NOINLINE void push_high(run_node* node) noexcept {
    node->next = nullptr;
    (high_ != nullptr ? last_high_->next : high_) = node;
    last_high_ = node;
    mark();
  }
  /// Queues it behind all ready nodes.
  PIRN_ALWAYS_INLINE void push_back(run_node* node) noexcept {
    link_before(now_.running, node);
    if (next_ == now_.running) {
      next_ = node;
    }
  }
  /// Queues it in front of all ready nodes, subject to the limit of turns.
  PIRN_ALWAYS_INLINE void push_woken(run_node* node) noexcept {
    node->next = woken_;
    woken_ = node;
  }
  PIRN_ALWAYS_INLINE void push(run_node* node, placement where) noexcept {
    where == placement::back ? push_back(node) : push_woken(node);
  }
  /// Called when the running fiber has become one of high priority. The opposite is noticed at the next switch.
  void running_is_high_now() noexcept { mark(); }
  /// Puts the running node behind all others; returns the next to run, which may be the same one. `woken` must be zero.
  PIRN_ALWAYS_INLINE run_node* rotate() noexcept { return run(next_); }
  /// As `rotate`, for any `woken`: behind all others of its priority. Not for the scheduler.
  run_node* rotate_slow() noexcept {
    if (marked_) [[unlikely]] {
      return rotate_marked();
    }
    if (!woken_is_next()) {
      flush_woken();
      return rotate();
    }
    run_node* const node = pop_woken();
    link_before(next_, node);
    return run(node);
  }
  /// Whether a node that was just woken may run before those in the ring.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool may_overtake() const noexcept { return woken_turns_.allows_now(); }
  /// Whether a wake-up may switch away from the running node: it holds no lock for which that is forbidden.
  [[nodiscard]] bool may_switch_over() const noexcept { return !now_.no_switch_over; }
  /// Puts the running node behind all others and runs `node`, just woken and not queued yet. Only if it `may_overtake`.
  PIRN_ALWAYS_INLINE void hand_over(run_node* node) noexcept {
    woken_turns_.count();
    link_before(next_, node);
    run(node);
  }
  /// Whether `leave_to_claimed` may be called. If no other node is ready the limit of turns begins anew, since none
  /// waits.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool may_leave_to_claimed() noexcept { return may_overtake() || restart_if_alone(); }
  /// Removes the running node from the ring and runs `node`, just woken and not queued yet.
  PIRN_ALWAYS_INLINE void leave_to_claimed(run_node* node) noexcept {
    woken_turns_.count();
    leave_to(node);
  }
  /// Puts the running node behind all others of its priority and runs the scheduler.
  run_node* pause() noexcept {
    run_node* const self = now_.running;
    if (marked_ && is_high(self)) [[unlikely]] {
      replace(self, &scheduler_);
      push_high(self);
    } else {
      link_before(next_, &scheduler_);
    }
    return run(&scheduler_);
  }
  /// Removes the running node from the ring; returns the next to run: the scheduler if nothing is ready.
  PIRN_ALWAYS_INLINE run_node* leave() noexcept {
    run_node* const woken = leave_to_woken();
    return woken != nullptr ? woken : leave_to_others();
  }
  /// As `leave` if the node woken last may run next; else does nothing and returns null.
  PIRN_ALWAYS_INLINE run_node* leave_to_woken() noexcept {
    return woken_ != nullptr && may_overtake() ? leave_to(pop_woken()) : nullptr;
  }
  /// As `leave`, after `leave_to_woken` returned null.
  PIRN_ALWAYS_INLINE run_node* leave_to_others() noexcept {
    run_node* const self = now_.running;
    run_node* const next = self->next;
    if (woken_ == nullptr && next != self) [[likely]] {
      next->previous = self->previous;
      self->previous->next = next;
      if (woken_turns_.counted()) [[unlikely]] {
        woken_turns_.restart();
      }
      return run(next);
    }
    return leave_slow();
  }
  /// Removes the running node from the ring and runs `node` in its place.
  void become(run_node* node) noexcept {
    replace(now_.running, node);
    run_marked(node);
  }
  /// Removes the running node from the ring and runs the scheduler.
  run_node* leave_to_scheduler() noexcept { return leave_to(&scheduler_); }
  /// Removes the nodes that `which` accepts, except those of high priority, and gives them to `take`. For the
  /// scheduler. O(n).
  template <class Which, class Take>
  void remove_if(const Which& which, const Take& take) noexcept {
    for (run_node* node = next_; node != now_.running;) {
      run_node* const next = node->next;
      if (which(node)) {
        unlink(node);
        take(node);
      }
      node = next;
    }
    next_ = now_.running->next;
    for (run_node** at = &woken_; *at != nullptr && *at != &scheduler_;) {
      run_node* const node = *at;
      if (which(node)) {
        *at = node->next;
        take(node);
      } else {
        at = &node->next;
      }
    }
  }
  /// Returns how many nodes besides the running one are ready. O(n).
  [[nodiscard]] std::size_t count_ready() const noexcept {
    std::size_t count = 0;
    for (const run_node* node = next_; node != now_.running; node = node->next) {
      ++count;
    }
    for (const run_node* node = woken_; node != nullptr && node != &scheduler_; node = node->next) {
      ++count;
    }
    for (const run_node* node = high_; node != nullptr; node = node->next) {
      ++count;
    }
    return count;
  }

 private:
  static PIRN_ALWAYS_INLINE void link_before(run_node* position, run_node* node) noexcept {
    node->next = position;
    node->previous = position->previous;
    position->previous->next = node;
    position->previous = node;
  }
  PIRN_ALWAYS_INLINE run_node* run(run_node* node) noexcept {
    next_ = node->next;
    return now_.running = node;
  }
  static PIRN_ALWAYS_INLINE void unlink(run_node* node) noexcept {
    node->next->previous = node->previous;
    node->previous->next = node->next;
  }
  static void replace(run_node* old, run_node* node) noexcept {
    if (old->next == old) {
      node->next = node->previous = node;
      return;
    }
    node->next = old->next;
    node->previous = old->previous;
    node->next->previous = node;
    node->previous->next = node;
  }
  PIRN_ALWAYS_INLINE run_node* leave_to(run_node* node) noexcept {
    replace(now_.running, node);
    return run(node);
  }
  [[nodiscard]] bool has_woken() const noexcept { return woken_ != nullptr && woken_ != &scheduler_; }
  /// Whether only the mark, or nothing, lies below the woken node.
  [[nodiscard]] bool is_last_woken(const run_node* node) const noexcept {
    return node->next == nullptr || node->next == &scheduler_;
  }
  /// Restarts the turns of woken nodes if only the running one is ready. True if one may overtake then.
  PIRN_ASIDE PIRN_NOINLINE bool restart_if_alone() noexcept {
    if (next_ != now_.running || woken_ != nullptr) {
      return false;
    }
    woken_turns_.restart();
    return may_overtake();
  }
  /// Whether a woken node is next. If no other one is ready their count begins anew, since no node waited.
  [[nodiscard]] bool woken_is_next() noexcept {
    if (woken_ != nullptr && !woken_turns_.allows() && next_ == now_.running && is_last_woken(woken_)) {
      woken_turns_.restart();
      return true;
    }
    return woken_ != nullptr && woken_turns_.allows();
  }
  /// Gives the ring its turn: the woken nodes go behind all in it, the oldest first, but the newest stays if woken
  /// nodes may ever overtake.
  void flush_woken() noexcept {
    woken_turns_.restart();
    if (!has_woken()) {
      return;
    }
    run_node** const first = woken_turns_.allows_any() ? &woken_->next : &woken_;
    run_node* position = now_.running;
    run_node* node = *first;
    while (node != nullptr && node != &scheduler_) {
      run_node* const older = node->next;
      link_before(position, node);
      position = node;
      node = older;
    }
    *first = node;
    next_ = now_.running->next;
  }
  run_node* pop_woken() noexcept {
    run_node* const node = woken_;
    woken_ = node->next;
    woken_turns_.count();
    return node;
  }
  /// As `leave_to_others`, if nothing is ready, the woken nodes have had their turns, or there is a mark.
  PIRN_ASIDE PIRN_NOINLINE run_node* leave_slow() noexcept {
    if (marked_) [[unlikely]] {
      return leave_marked();
    }
    if (woken_is_next()) {
      return leave_to(pop_woken());
    }
    run_node* const self = now_.running;
    flush_woken();
    if (self->next == self) {
      return self == &scheduler_ ? self : leave_to_scheduler();
    }
    unlink(self);
    return run(self->next);
  }

  // -- priorities. While a fiber of high priority is ready or running, the scheduler's node lies as a mark at the
  // bottom of the woken ones. It keeps every switch off the fast paths.
  static bool is_high(const run_node* fiber) noexcept {
    return static_cast<const fiber_control*>(fiber)->has_high_priority();
  }
  void mark() noexcept {
    if (!marked_) {
      run_node** bottom = &woken_;
      while (*bottom != nullptr) {
        bottom = &(*bottom)->next;
      }
      *bottom = &scheduler_;
      marked_ = true;
      woken_turns_.forbid();
    }
  }
  /// Ends a switch: removes the mark if it is no longer needed and no node lies on it.
  run_node* run_marked(run_node* node) noexcept {
    if (woken_ == &scheduler_ && high_ == nullptr && (node == &scheduler_ || !is_high(node))) {
      woken_ = nullptr;
      marked_ = false;
      woken_turns_.permit();
    }
    return run(node);
  }
  /// Whether a fiber of high priority may run next.
  [[nodiscard]] bool high_may_run() const noexcept {
    return high_turns_.allows() || (next_ == now_.running && !has_woken());
  }
  /// Takes the node that runs before those in the ring, or returns null. The running node is still in the ring.
  run_node* pop_preferred() noexcept {
    if (high_ != nullptr && high_may_run()) {
      run_node* const node = high_;
      high_ = node->next;
      high_turns_.count();
      return node;
    }
    high_turns_.restart();
    if (has_woken() && woken_is_next()) {
      return pop_woken();
    }
    flush_woken();
    return nullptr;
  }
  PIRN_NOINLINE run_node* rotate_marked() noexcept {
    run_node* const self = now_.running;
    const bool high = is_high(self);
    if (high && high_ == nullptr && high_may_run()) {
      high_turns_.count();
      return self;
    }
    run_node* node = pop_preferred();
    if (!high) {
      if (node != nullptr) {
        link_before(next_, node);
      }
      return run_marked(node != nullptr ? node : next_);
    }
    if (node != nullptr) {
      replace(self, node);
    } else {
      node = next_;
      unlink(self);
    }
    push_high(self);
    return run_marked(node);
  }
  PIRN_NOINLINE run_node* leave_marked() noexcept {
    run_node* const self = now_.running;
    run_node* node = pop_preferred();
    if (node != nullptr) {
      replace(self, node);
    } else if (next_ != self) {
      node = next_;
      unlink(self);
    } else {
      node = &scheduler_;
      replace(self, node);
    }
    return run_marked(node);
  }

  running_node now_;           ///< first, where `running_node::here` finds it
  run_node* woken_ = nullptr;  ///< the newest, linked by `next` down to null or the mark
  turn_budget woken_turns_;    ///< of woken fibers since one of the ring ran; none is permitted while there is a mark
  /// Always now_.running->next: kept here so that a yield need not find the running node before it can find the next.
  run_node* next_;
  run_node scheduler_;        ///< not where a fiber's block could lie: see `owner_mark`
  run_node* high_ = nullptr;  ///< the oldest ready one of high priority, linked by `next`
  run_node* last_high_ = nullptr;
  turn_budget high_turns_;  ///< of high priority since another one
  bool marked_ = false;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
