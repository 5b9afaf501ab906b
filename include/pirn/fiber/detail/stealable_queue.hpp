// The ready fibers of one worker that any other worker of the runtime may take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "pirn/fiber/detail/inbox.hpp"
#include "pirn/fiber/detail/run_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A list, first in first out, of fibers that are `stealable`: linked by their nodes, so that a push cannot fail. Its
/// owner and one thief at a time exclude each other as in the work stealing of Cilk-5 (Frigo, Leiserson and Randall
/// 1998): a thief takes a lock, and the owner only says that it is inside. The owner's fence is left to the thief,
/// which makes one for all threads (Ladan-Mozes, Lee and Vyukov 2011). Neither waits for the other: a thief that meets
/// the owner goes elsewhere, and an owner that meets a thief pushes to the inbox of the queue, which the next one
/// inside empties into the list. A node is only looked at from inside, so that it may go with its fiber. The fiber that
/// was woken last is in the LIFO slot: its owner takes it before all others, since its data is in the cache, and
/// thieves only if it stays there for long. After the `runnext` of Go's scheduler.
class stealable_queue {
 public:
  /// How many fibers a thief takes at most.
  static constexpr std::size_t max_stolen = 32;

  stealable_queue() = default;
  stealable_queue(const stealable_queue&) = delete;
  stealable_queue& operator=(const stealable_queue&) = delete;

  /// Queues a node behind all others, or nearly so if a thief is inside. The owner only, which must then wake a worker.
  void push(run_node* node) noexcept {
    if (!enter()) {
      push_from_outside(node);
      return;
    }
    append(node);
    leave();
  }
  /// As `push`, from any thread.
  void push_from_outside(run_node* node) noexcept { static_cast<void>(outside_.push(node)); }
  /// Takes the oldest node; null if the queue is empty, or a thief is inside. The owner only.
  [[nodiscard]] run_node* take() noexcept {
    if (empty() || !enter()) {
      return nullptr;
    }
    absorb();
    run_node* oldest = nullptr;
    if (const std::size_t size = size_.load(platform::memory_order_relaxed); size != 0) {  // not all stolen meanwhile
      oldest = first_;
      first_ = oldest->next;
      set_size(size - 1);
      taken_.store(taken() + 1, platform::memory_order_relaxed);
    }
    leave();
    return oldest;
  }

  /// Takes `node` out of the list, wherever it is in there, if it is in this queue at all, which `is_here` says from
  /// inside: no thief moves it meanwhile. It is not in the LIFO slot. False if it is elsewhere, or a thief is inside.
  /// The owner only; O(1).
  template <class IsHere>
  [[nodiscard]] bool take_out(run_node* node, const IsHere& is_here) noexcept {
    if (!enter()) {
      return false;
    }
    absorb();
    const bool found = is_here();
    if (found) {
      unlink(node);
      taken_.store(taken() + 1, platform::memory_order_relaxed);
    }
    leave();
    return found;
  }

  /// Puts `node` into the LIFO slot; the node that was there goes behind all others. The owner only.
  void push_lifo_slot(run_node* node) noexcept {
    if (!enter()) {
      push_from_outside(node);
      return;
    }
    if (lifo_version() != 0) {
      append(lifo_slot_);
    }
    lifo_slot_ = node;
    lifo_version_.store(2 * (lifo_pushes() + 1) + 1, platform::memory_order_relaxed);
    leave();
  }
  /// Empties the LIFO slot; null if it is empty, or a thief is inside. The owner only.
  [[nodiscard]] run_node* pop_lifo_slot() noexcept {
    if (lifo_version() == 0 || !enter()) {
      return nullptr;
    }
    run_node* const node = take_lifo_slot();
    leave();
    return node;
  }
  /// A version number for the LIFO slot; 0 if it is empty. A hint for others than the owner.
  [[nodiscard]] std::uint32_t lifo_version() const noexcept {
    const std::uint32_t all = lifo_version_.load(platform::memory_order_relaxed);
    return (all & 1) != 0 ? all : 0;
  }
  /// How often the LIFO slot was filled. A hint.
  [[nodiscard]] std::uint32_t lifo_pushes() const noexcept {
    return lifo_version_.load(platform::memory_order_relaxed) / 2;
  }

  /// Whether the queue is empty outside of the LIFO slot, by plain loads. Any thread; for others than the owner a hint.
  [[nodiscard]] bool empty() const noexcept {
    return size_.load(platform::memory_order_relaxed) == 0 && outside_.empty();
  }
  /// Returns the number of nodes, without those that others have just pushed. A hint.
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(platform::memory_order_relaxed); }
  /// Returns how many nodes its owner has taken. A hint for others.
  [[nodiscard]] std::uint32_t taken() const noexcept { return taken_.load(platform::memory_order_relaxed); }
  /// Whether a steal is worth a thief's fence. A hint.
  [[nodiscard]] bool worth_a_look() const noexcept {
    return !empty() && owner_.load(platform::memory_order_relaxed) != held;
  }
  /// Takes the older half, at least one and at most `max_stolen`, linked by `next` in order of age; they belong to
  /// `thief` then. Null if the queue is empty, or the owner or another thief is inside. Any worker but the owner; one
  /// fence of all threads.
  [[nodiscard]] run_node* steal(worker* thief) noexcept {
    return as_thief([=, this]() noexcept { return cut_half(thief); });
  }
  /// As `steal`, for the LIFO slot, if its version is still `number`.
  [[nodiscard]] run_node* steal_lifo_slot(worker* thief, std::uint32_t number) noexcept {
    return as_thief([=, this]() noexcept -> run_node* {
      if (lifo_version() != number) {
        return nullptr;
      }
      run_node* const node = take_lifo_slot();
      node->next = nullptr;
      static_cast<fiber_control*>(node)->move_to(thief);
      return node;
    });
  }

  /// Calls `move`, by which the owner of this queue becomes the home of a fiber that it has woken, unless the owner of
  /// `home`, the old one, holds its queue just now. True if it did. No fence: the rare holder makes one for both.
  template <class Move>
  bool adopt_from(const stealable_queue& home, const Move& move) noexcept {
    adopting_from_.store(&home, platform::memory_order_relaxed);
    platform::light_fence();  // pairs with the heavy fence in `hold`
    const bool may = home.owner_.load(platform::memory_order_acquire) != held;
    if (may) {
      move();
    }
    adopting_from_.store(nullptr, platform::memory_order_release);
    return may;
  }

  /// Keeps others from taking the owner's fibers while its thread looks at them, where it may have interrupted
  /// anything. Not `alone` if another worker does not leave: the same signal may have interrupted it inside.
  class hold {
   public:
    /// `all` holds pointers to all workers, or to objects with a `stealable` like them.
    template <class Workers>
    hold(stealable_queue& queue, const Workers& all) noexcept
        : queue_(queue), before_(queue.owner_.load(platform::memory_order_relaxed)) {
      queue_.owner_.store(held, platform::memory_order_relaxed);
      platform::heavy_fence();  // pairs with the light fence in `adopt_from` and the heavy one in `as_thief`
      const auto taken_from = [&queue](const auto& worker) {
        return worker->stealable.adopting_from_.load(platform::memory_order_acquire) == &queue;
      };
      for (int attempts = 0; (alone_ = !queue_.thief_.load(platform::memory_order_acquire) &&
                                       std::none_of(std::begin(all), std::end(all), taken_from)) == false;
           ++attempts) {
        if (attempts == max_attempts) {
          break;
        }
        platform::yield_thread();
      }
    }
    ~hold() { queue_.owner_.store(before_, platform::memory_order_release); }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    [[nodiscard]] bool alone() const noexcept { return alone_; }

   private:
    static constexpr int max_attempts = 10'000;
    stealable_queue& queue_;
    std::uint8_t before_;
    bool alone_ = false;
  };

 private:
  static constexpr std::uint8_t outside = 0;
  static constexpr std::uint8_t inside = 1;
  static constexpr std::uint8_t held = 2;

  [[nodiscard]] bool enter() noexcept {
    owner_.store(inside, platform::memory_order_relaxed);
    platform::light_fence();  // pairs with the heavy fence in `as_thief`
    if (thief_.load(platform::memory_order_acquire)) {
      leave();
      return false;
    }
    return true;
  }
  /// Release: the next thief sees the list in its present state.
  void leave() noexcept { owner_.store(outside, platform::memory_order_release); }
  /// Returns what `take` finds inside; null if the owner or another thief is there.
  template <class Take>
  run_node* as_thief(const Take& take) noexcept {
    if (thief_.exchange(true, platform::memory_order_acq_rel)) {
      return nullptr;
    }
    // Pairs with the light fence in `enter`: orders the store above before the load below, and the reverse there.
    platform::heavy_fence();
    run_node* const found = owner_.load(platform::memory_order_acquire) == outside ? take() : nullptr;
    thief_.store(false, platform::memory_order_release);
    return found;
  }

  // -- called inside
  [[nodiscard]] run_node* take_lifo_slot() noexcept {
    if (lifo_version() == 0) {
      return nullptr;  // stolen meanwhile
    }
    lifo_version_.store(2 * lifo_pushes(), platform::memory_order_relaxed);
    return lifo_slot_;
  }
  void set_size(std::size_t size) noexcept { size_.store(size, platform::memory_order_relaxed); }
  void append(run_node* node) noexcept {
    const std::size_t size = size_.load(platform::memory_order_relaxed);
    (size == 0 ? first_ : last_->next) = node;
    node->previous = last_;  // not read for the first one
    last_ = node;
    set_size(size + 1);
  }
  void unlink(run_node* node) noexcept {
    const std::size_t size = size_.load(platform::memory_order_relaxed);
    if (node == first_) {
      first_ = node->next;  // not read if the list is empty now
    } else if (node == last_) {
      last_ = node->previous;
    } else {
      node->previous->next = node->next;
      node->next->previous = node->previous;
    }
    set_size(size - 1);
  }
  void absorb() noexcept {
    if (outside_.empty()) {
      return;
    }
    for (run_node* node = outside_.take_all(); node != nullptr;) {
      run_node* const next = node->next;
      append(node);
      node = next;
    }
  }
  run_node* cut_half(worker* thief) noexcept {
    absorb();
    const std::size_t size = size_.load(platform::memory_order_relaxed);
    if (size == 0) {
      return nullptr;
    }
    const std::size_t count = std::min((size + 1) / 2, max_stolen);
    run_node* const oldest = first_;
    run_node* last = oldest;
    static_cast<fiber_control*>(last)->move_to(thief);
    for (std::size_t i = 1; i < count; ++i) {
      last = last->next;
      static_cast<fiber_control*>(last)->move_to(thief);
    }
    first_ = last->next;
    last->next = nullptr;
    set_size(size - count);
    return oldest;
  }

  platform::atomic<std::uint8_t> owner_{outside};  ///< where the owner is; written by its thread
  run_node* first_ = nullptr;                      ///< valid if the size is not 0; used inside, as the next two
  run_node* last_ = nullptr;                       ///< as `first_`
  platform::atomic<std::size_t> size_{0};          ///< of the list
  platform::atomic<std::uint32_t> taken_{0};
  run_node* lifo_slot_ = nullptr;                                    ///< used inside, as the next
  platform::atomic<std::uint32_t> lifo_version_{0};                  ///< twice the number of fills; odd while filled
  platform::atomic<const stealable_queue*> adopting_from_{nullptr};  ///< written by its owner
  alignas(64) platform::atomic<bool> thief_{false};
  inbox outside_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
