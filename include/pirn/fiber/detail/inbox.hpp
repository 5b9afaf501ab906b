// The inbox of a worker: fibers that other threads have made ready.
#pragma once

#include "pirn/fiber/detail/control.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Fibers handed to a worker by other threads: a stack that the owner empties at once (Treiber 1986). Its head also
/// says that the owner sleeps, so that a hand-over cannot miss it.
class inbox {
 public:
  /// Pushes a node. True if the owner is parked and must be notified. Any thread.
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
  /// Whether the inbox is empty and the owner sleeps, or is about to, or is awake without having said so. Any thread.
  [[nodiscard]] bool asleep() const noexcept { return head_.load(platform::memory_order_seq_cst) == parked; }
  /// Takes all nodes, oldest first, linked by `next`. The owner only.
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
  [[nodiscard]] bool set_parked_mark() noexcept {
    std::uintptr_t none = 0;
    return head_.compare_exchange_strong(none, parked, platform::memory_order_seq_cst, platform::memory_order_relaxed);
  }
  /// Called when the owner is awake again.
  void clear_parked_mark() noexcept {
    std::uintptr_t expected = parked;
    head_.compare_exchange_strong(expected, 0, platform::memory_order_relaxed, platform::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t parked = 1;
  platform::atomic<std::uintptr_t> head_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
