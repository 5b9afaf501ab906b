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
/// Two cores that take turns at a line pay for its way at each node, ten times as much as for the node itself. So each
/// end of the queue has a user, the worker that was there last. A caller of another worker first looks, at intervals,
/// whether that end still changes, and comes when it rests, or after some ten microseconds. A consumer that is left
/// with one node, and would need the producer's line to take it, waits for a moment without a look, in which the
/// producer gets ahead.
class low_lock_queue {
 public:
  low_lock_queue() noexcept = default;
  low_lock_queue(const low_lock_queue&) = delete;
  low_lock_queue& operator=(const low_lock_queue&) = delete;

  /// Queues a node, which must stay until it is taken. `who` stands for the core of the caller; plain threads count as
  /// one.
  PIRN_ALWAYS_INLINE void push(low_lock_node& node, const void* who = platform::current_worker()) noexcept {
    node.next_in_queue.store(nullptr, platform::memory_order_relaxed);
    if (producer_.load(platform::memory_order_relaxed) != who) [[unlikely]] {
      come_to(tail_, producer_, who);
    }
    low_lock_node* before = tail_.load(platform::memory_order_relaxed);
    // Acquire: the former tail has been prepared before the store below. Release: so has this node.
    while (!tail_.compare_exchange_weak(before, &node, platform::memory_order_acq_rel, platform::memory_order_relaxed))
        [[unlikely]] {
      platform::relax();
    }
    before->next_in_queue.store(&node, platform::memory_order_release);
  }

  /// Returns the oldest node, null if the queue is `empty`. Waits for producers that are between their two steps, and
  /// for other consumers.
  [[nodiscard]] PIRN_ALWAYS_INLINE low_lock_node* try_pop(const void* who = platform::current_worker()) noexcept {
    if (empty()) {
      return nullptr;
    }
    if (consumer_.load(platform::memory_order_relaxed) != who) [[unlikely]] {
      come_to(head_.next_in_queue, consumer_, who);
    }
    const platform::spin_guard turn(taking_);
    low_lock_node* const first = head_.next_in_queue.load(platform::memory_order_acquire);
    if (first == nullptr) [[unlikely]] {
      return nullptr;
    }
    low_lock_node* next = first->next_in_queue.load(platform::memory_order_acquire);
    if (next == nullptr && producer_.load(platform::memory_order_relaxed) != who) [[unlikely]] {
      relax(pause);
      next = first->next_in_queue.load(platform::memory_order_acquire);
    }
    if (next == nullptr) [[unlikely]] {
      // The next producer links its node behind `head_` as soon as the tail is there. Until then the queue is not
      // empty, since that producer may still come between this consumer and the tail.
      head_.next_in_queue.store(&head_, platform::memory_order_relaxed);
      low_lock_node* last = first;
      if (tail_.compare_exchange_strong(last, &head_, platform::memory_order_acq_rel, platform::memory_order_relaxed)) {
        low_lock_node* none = &head_;
        head_.next_in_queue.compare_exchange_strong(none, nullptr, platform::memory_order_relaxed,
                                                    platform::memory_order_relaxed);
        return first;
      }
      next = link_of(*first);
    }
    head_.next_in_queue.store(next, platform::memory_order_relaxed);
    return first;
  }

  /// Whether it was empty at some moment of the call. A push that is between its two steps may hide its node and those
  /// behind it.
  [[nodiscard]] bool empty() const noexcept {
    return head_.next_in_queue.load(platform::memory_order_relaxed) == nullptr;
  }

 private:
  // In the units of platform::relax, some ten nanoseconds each.
  static constexpr int pause = platform::exploring ? 1 : 16;
  static constexpr int longest_wait = platform::exploring ? 2 : 4096;

  static void relax(int times) noexcept {
    for (int i = 0; i < times; ++i) {
      platform::relax();
    }
  }
  /// Waits until an end of the queue no longer changes, within bounds, and takes the place of its user.
  PIRN_NOINLINE static void come_to(const platform::atomic<low_lock_node*>& end, platform::atomic<const void*>& user,
                                    const void* who) noexcept {
    const low_lock_node* seen = end.load(platform::memory_order_relaxed);
    for (int wait = pause; wait < longest_wait; wait *= 2) {
      relax(wait);
      const low_lock_node* const now = end.load(platform::memory_order_relaxed);
      if (now == seen) {
        break;
      }
      seen = now;
    }
    user.store(who, platform::memory_order_relaxed);
  }
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
  platform::atomic<const void*> producer_{nullptr};  ///< the user of that end
  alignas(64) low_lock_node head_;
  platform::spinlock taking_;
  platform::atomic<const void*> consumer_{nullptr};  ///< the user of that end
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
