// The run queue of one worker, used by that worker only.
#pragma once

#include "pirn/fiber/detail/control.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// A ring that holds the running node and, after it in order of age, the ready ones: a yield is one load and one
/// store. Fibers just woken go to a stack beside the ring and run first, newest first, since their data is in the
/// processor's cache; but at most `bound` of them in a row while somebody waits in the ring, so that nobody starves.
/// The scheduler's own node is in the ring just while it runs.
class run_queue {
 public:
  explicit run_queue(unsigned bound) noexcept : bound_(bound), running_(&scheduler_), next_(&scheduler_) {
    scheduler_.next = scheduler_.previous = &scheduler_;
  }
  run_queue(const run_queue&) = delete;
  run_queue& operator=(const run_queue&) = delete;

  [[nodiscard]] PIRN_ALWAYS_INLINE run_node* running() const noexcept { return running_; }
  [[nodiscard]] run_node* scheduler() noexcept { return &scheduler_; }
  [[nodiscard]] const run_node* scheduler() const noexcept { return &scheduler_; }
  /// Not zero if woken fibers are waiting.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t woken() const noexcept {
    return reinterpret_cast<std::uintptr_t>(woken_);
  }
  /// Whether anything but the running node is ready.
  [[nodiscard]] bool has_ready() const noexcept { return woken_ != nullptr || next_ != running_; }

  /// Behind all that are ready.
  PIRN_ALWAYS_INLINE void push_back(run_node* node) noexcept {
    link_before(running_, node);
    if (next_ == running_) {
      next_ = node;
    }
  }
  /// In front of all that are ready, subject to the bound.
  PIRN_ALWAYS_INLINE void push_woken(run_node* node) noexcept {
    node->next = woken_;
    woken_ = node;
  }

  PIRN_ALWAYS_INLINE void push(run_node* node, bool back) noexcept { back ? push_back(node) : push_woken(node); }

  /// The running node goes behind all others; returns the next to run, which may be the same one. No woken fiber may
  /// be waiting.
  PIRN_ALWAYS_INLINE run_node* rotate() noexcept { return run(next_); }
  /// As `rotate` where woken fibers may be waiting.
  run_node* rotate_slow() noexcept {
    if (!take_woken()) {
      streak_ = 0;
      return rotate();
    }
    run_node* const node = pop_woken();
    link_before(next_, node);
    return run(node);
  }
  /// The running node goes behind all others and the scheduler runs.
  run_node* pause() noexcept {
    link_before(next_, &scheduler_);
    return run(&scheduler_);
  }
  /// The running node leaves the ring; returns the next to run: the scheduler if nothing is ready.
  PIRN_ALWAYS_INLINE run_node* leave() noexcept {
    run_node* const self = running_;
    if (take_woken()) {
      run_node* const node = pop_woken();
      replace(self, node);
      return run(node);
    }
    run_node* const next = self->next;
    if (next == self) [[unlikely]] {
      return self == &scheduler_ ? self : leave_to_scheduler();
    }
    next->previous = self->previous;
    self->previous->next = next;
    streak_ = 0;
    return run(next);
  }
  /// The running node leaves the ring and the scheduler runs.
  PIRN_NOINLINE run_node* leave_to_scheduler() noexcept {
    replace(running_, &scheduler_);
    return run(&scheduler_);
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
    return running_ = node;
  }
  static PIRN_ALWAYS_INLINE void replace(run_node* old, run_node* node) noexcept {
    if (old->next == old) {
      node->next = node->previous = node;
      return;
    }
    node->next = old->next;
    node->previous = old->previous;
    node->next->previous = node;
    node->previous->next = node;
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool take_woken() const noexcept {
    return woken_ != nullptr && (streak_ < bound_ || next_ == running_);
  }
  PIRN_ALWAYS_INLINE run_node* pop_woken() noexcept {
    run_node* const node = woken_;
    woken_ = node->next;
    ++streak_;
    return node;
  }
  run_node* woken_ = nullptr;
  unsigned streak_ = 0;  ///< woken fibers run since somebody from the ring ran
  unsigned bound_;
  run_node* running_;
  /// Always running_->next: kept here so that a yield need not find the running node before it can find the next.
  run_node* next_;
  run_node scheduler_;
};

/// Fibers handed to a worker by other threads: a stack that the owner empties whole (Treiber 1986), whose head also
/// says that the owner sleeps, so that a hand-over cannot miss it.
class inbox {
 public:
  /// True if the owner is parked and must be notified. Any thread.
  [[nodiscard]] bool push(run_node* node) noexcept {
    std::uintptr_t old = head_.load(platform::memory_order_relaxed);
    do {
      node->next = old == parked ? nullptr : reinterpret_cast<run_node*>(old);
      // Release hands over the node and all that happened before; acquire orders a notification after the parking.
    } while (!head_.compare_exchange_weak(old, reinterpret_cast<std::uintptr_t>(node), platform::memory_order_acq_rel,
                                          platform::memory_order_relaxed));
    return old == parked;
  }
  [[nodiscard]] bool empty() const noexcept {
    const std::uintptr_t head = head_.load(platform::memory_order_relaxed);
    return head == 0 || head == parked;
  }
  /// Takes all, oldest first, linked by `next`. The owner only.
  [[nodiscard]] run_node* take_all() noexcept {
    const std::uintptr_t old = head_.exchange(0, platform::memory_order_acquire);
    run_node* oldest_first = nullptr;
    for (auto* node = old == parked ? nullptr : reinterpret_cast<run_node*>(old); node != nullptr;) {
      run_node* const next = node->next;
      node->next = oldest_first;
      oldest_first = node;
      node = next;
    }
    return oldest_first;
  }
  /// Announces that the owner is about to sleep. False if there is something to take first.
  [[nodiscard]] bool park() noexcept {
    std::uintptr_t none = 0;
    return head_.compare_exchange_strong(none, parked, platform::memory_order_seq_cst, platform::memory_order_relaxed);
  }
  /// The owner is awake again.
  void unpark() noexcept {
    std::uintptr_t expected = parked;
    head_.compare_exchange_strong(expected, 0, platform::memory_order_relaxed, platform::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t parked = 1;
  platform::atomic<std::uintptr_t> head_{0};
};

}  // namespace pirn::inline PIRN_ABI::detail
