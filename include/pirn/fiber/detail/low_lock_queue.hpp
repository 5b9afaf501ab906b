// A queue of nodes in the order of their arrival, for any number of producers and consumers on any threads.
#pragma once

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A node of a `low_lock_queue`: a base or a member of what is queued.
struct low_lock_node {
  platform::atomic<low_lock_node*> next_in_queue{nullptr};
};

/// The low-lock queue of Dolan, Muralidharan and Gregg 2013, "Compiler support for lightweight context switching": a
/// producer swings the tail to its node by one compare-and-swap and then links the node behind the former tail.
/// Consumers take turns by a lock, and wait for a link that is still missing. So a node that has left is not written
/// to, and, unlike there, not read: no fault needs to be caught where a node is freed at once.
///
///      head_ -> oldest -> ... -> youngest <- tail_          empty: tail_ names head_
///
/// A producer that loses the race for the tail stays away for a while. The other one has the line to itself meanwhile,
/// and two of them on two cores do not exchange it for each node.
class low_lock_queue {
 public:
  low_lock_queue() noexcept = default;
  low_lock_queue(const low_lock_queue&) = delete;
  low_lock_queue& operator=(const low_lock_queue&) = delete;

  /// Queues a node, which must stay until it is taken.
  void push(low_lock_node& node) noexcept {
    node.next_in_queue.store(nullptr, platform::memory_order_relaxed);
    low_lock_node* before = tail_.load(platform::memory_order_relaxed);
    // Acquire: the former tail has been prepared before the store below. Release: so has this node.
    for (int pause = shortest_pause;
         !tail_.compare_exchange_weak(before, &node, platform::memory_order_acq_rel, platform::memory_order_relaxed);) {
      for (int i = 0; i < pause; ++i) {
        platform::relax();
      }
      pause = pause < longest_pause ? 2 * pause : pause;
      before = tail_.load(platform::memory_order_relaxed);
    }
    before->next_in_queue.store(&node, platform::memory_order_release);
  }

  /// Returns the oldest node, null if the queue is empty. Waits for producers that are between their two steps, and for
  /// other consumers.
  [[nodiscard]] low_lock_node* try_pop() noexcept {
    if (empty()) {
      return nullptr;
    }
    const platform::spin_guard turn(taking_);
    low_lock_node* first = head_.next_in_queue.load(platform::memory_order_acquire);
    if (first == nullptr) {
      if (tail_.load(platform::memory_order_relaxed) == &head_) {
        return nullptr;
      }
      first = link_of(head_);
    }
    low_lock_node* next = first->next_in_queue.load(platform::memory_order_acquire);
    if (next == nullptr) {
      // The next producer links its node behind `head_` as soon as the tail is there.
      head_.next_in_queue.store(nullptr, platform::memory_order_relaxed);
      low_lock_node* last = first;
      if (tail_.compare_exchange_strong(last, &head_, platform::memory_order_acq_rel, platform::memory_order_relaxed)) {
        return first;
      }
      next = link_of(*first);
    }
    head_.next_in_queue.store(next, platform::memory_order_relaxed);
    return first;
  }

  /// Whether it was empty at some moment of the call.
  [[nodiscard]] bool empty() const noexcept {
    // The tail is in a line of the producers, and is looked at only where that cannot be avoided.
    return head_.next_in_queue.load(platform::memory_order_relaxed) == nullptr &&
           tail_.load(platform::memory_order_relaxed) == &head_;
  }

 private:
  static constexpr int shortest_pause = 16;
  static constexpr int longest_pause = 1024;

  /// Waits until the producer that has swung the tail away from `node` links its own.
  static low_lock_node* link_of(const low_lock_node& node) noexcept {
    for (int looks = 1;; ++looks) {
      if (low_lock_node* const next = node.next_in_queue.load(platform::memory_order_acquire)) {
        return next;
      }
      looks % 64 == 0 ? platform::yield_thread() : platform::relax();  // its thread may have been preempted there
    }
  }

  alignas(64) platform::atomic<low_lock_node*> tail_{&head_};
  alignas(64) low_lock_node head_;
  platform::spinlock taking_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
