// The inbox of a worker: fibers and chains of tasks that other threads have made ready.
#pragma once

#include <cstdint>
#include <utility>

#include "pirn/fiber/detail/control.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The link of a ready chain of tasks, in an inbox and in the list of its worker.
struct ready_chain {
  ready_chain* next = nullptr;
};

/// Fibers and chains that other threads hand to a worker: a stack that the owner empties at once (Treiber 1986). Its
/// head also says that the owner sleeps, so that a hand-over cannot miss it. An entry is the address of a fiber's node,
/// or that of a chain's link, which has a bit set; so is the link from one entry to the next.
class inbox {
 public:
  /// Pushes a fiber. True if the owner is parked and must be notified. Any thread.
  [[nodiscard]] bool push(run_node* node) noexcept { return push(reinterpret_cast<std::uintptr_t>(node), node->next); }
  /// As the overload above, for a chain of tasks.
  [[nodiscard]] bool push(ready_chain* chain) noexcept {
    return push(reinterpret_cast<std::uintptr_t>(chain) | chain_bit, chain->next);
  }
  [[nodiscard]] bool empty() const noexcept {
    const std::uintptr_t head = head_.load(platform::memory_order_relaxed);
    return head == 0 || head == parked;
  }
  /// Whether the inbox is empty and the owner sleeps, or is about to, or is awake without having said so. Any thread.
  [[nodiscard]] bool asleep() const noexcept { return head_.load(platform::memory_order_seq_cst) == parked; }
  /// Takes all nodes, oldest first, linked by `next`, of an inbox that has no chains. The owner only.
  [[nodiscard]] run_node* take_all() noexcept { return reinterpret_cast<run_node*>(take()); }
  /// Takes all entries and calls `on_fiber` with each node and `on_chain` with each chain, the oldest first. The owner
  /// only.
  template <class OnFiber, class OnChain>
  void take_each(const OnFiber& on_fiber, const OnChain& on_chain) noexcept {
    for (std::uintptr_t entry = take(); entry != 0;) {
      const std::uintptr_t present = entry;
      if (ready_chain* const chain = as_chain(present); chain != nullptr) {
        entry = reinterpret_cast<std::uintptr_t>(chain->next);
        on_chain(chain);
      } else {
        auto* const node = reinterpret_cast<run_node*>(present);
        entry = reinterpret_cast<std::uintptr_t>(node->next);
        on_fiber(node);
      }
    }
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
  static constexpr std::uintptr_t chain_bit = 2;
  static_assert(alignof(ready_chain) > chain_bit && alignof(run_node) > chain_bit);

  static ready_chain* as_chain(std::uintptr_t entry) noexcept {
    return (entry & chain_bit) != 0 ? reinterpret_cast<ready_chain*>(entry & ~chain_bit) : nullptr;
  }
  template <class Entry>
  [[nodiscard]] bool push(std::uintptr_t entry, Entry*& next) noexcept {
    std::uintptr_t old = head_.load(platform::memory_order_relaxed);
    do {
      next = old == parked ? nullptr : reinterpret_cast<Entry*>(old);
      // Release hands over the entry and all that happened before; acquire orders a notification after the parking.
    } while (!head_.compare_exchange_weak(old, entry, platform::memory_order_acq_rel, platform::memory_order_relaxed));
    return old == parked;
  }
  /// Makes `before` the entry behind this one; returns the one that was there.
  static std::uintptr_t relink(std::uintptr_t entry, std::uintptr_t before) noexcept {
    if (ready_chain* const chain = as_chain(entry); chain != nullptr) {
      return reinterpret_cast<std::uintptr_t>(std::exchange(chain->next, reinterpret_cast<ready_chain*>(before)));
    }
    auto* const node = reinterpret_cast<run_node*>(entry);
    return reinterpret_cast<std::uintptr_t>(std::exchange(node->next, reinterpret_cast<run_node*>(before)));
  }
  /// Takes all entries; returns the oldest one.
  [[nodiscard]] std::uintptr_t take() noexcept {
    const std::uintptr_t old = head_.exchange(0, platform::memory_order_acquire);
    std::uintptr_t oldest_first = 0;
    for (std::uintptr_t entry = old == parked ? 0 : old; entry != 0;) {
      const std::uintptr_t next = relink(entry, oldest_first);
      oldest_first = entry;
      entry = next;
    }
    return oldest_first;
  }

  platform::atomic<std::uintptr_t> head_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
