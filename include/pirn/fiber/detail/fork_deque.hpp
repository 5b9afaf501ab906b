// The calls of `fork2` that are under way on a worker, whose continuations any worker may take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "pirn/context/arch_fiber.hpp"
#include "pirn/fiber/detail/control.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

struct stolen_continuation;

/// A stack that is ready for the first half of a `fork2`. The object lies on it, below the place of a cold part.
struct alignas(16) fork_stack {
  /// Makes one on a stack that is large enough for a fiber.
  static fork_stack* make(const stack& memory) noexcept {
    auto* const made = ::new (place(memory)) fork_stack{memory};
    arch::fork_root(made);
    return made;
  }
  /// Where on its stack it lies, just above the root frame.
  static void* place(const stack& memory) noexcept {
    return static_cast<char*>(fiber_control::below_cold(memory)) - sizeof(fork_stack);
  }
  /// The address for `arch::fork_into`.
  [[nodiscard]] PIRN_ALWAYS_INLINE void* root() noexcept {
    return reinterpret_cast<char*>(this) - arch::fork_root_size;
  }

  stack memory;
};

/// A call of `fork2`, from the moment when its first half begins; lies on the caller's stack. Also an eager child of a
/// scope: then the continuation needs no control block, because the child is a separate fiber.
struct fork_point {
  PIRN_ALWAYS_INLINE fork_point(fiber_control* who, const inherited_context& what) noexcept
      : caller(who), inherited(what) {}
  union {
    arch::context state;  ///< the continuation: where the second half begins; not written twice
  };
  fork_stack* on;               ///< where the first half runs; null for a child
  fiber_control* caller;        ///< the calling fiber, which also runs the first half
  inherited_context inherited;  ///< the scope and values around the caller
  stolen_continuation* stolen;  ///< runs the second half; set by the thief, as the next seven
  fork_point* older;            ///< in the caller's list of first halves
  const stack* root;            ///< of the fiber itself
  first_half_stack around;      ///< of the first half in which the call was; empty if in none
  std::uintptr_t progress;
  std::uint64_t epoch;     ///< of the caller's wait for the stolen continuation
  std::uintptr_t outcome;  ///< of the first half
  [[no_unique_address]] sanitizer_state continuation;
  [[no_unique_address]] sanitizer_state first;
};

/// The fiber that continues with a stolen continuation: it runs the second half and ends there. Its `memory` is the
/// stack of the first half, of which it has the place for a cold part.
struct stolen_continuation : child_control {
  explicit stolen_continuation(std::uint64_t number) noexcept : child_control(number) {
    join_word.store(join_stolen_continuation, platform::memory_order_relaxed);
  }
  /// From here on a stop of the caller, or of a scope that it had opened, stops the stolen continuation.
  void follow(fiber_control& caller) noexcept;
  fork_point* point = nullptr;
};

/// A slot for a continuation.
struct deque_slot {
  fork_point* point;
  fork_stack* on;  ///< for the first half; null before the first slot and behind the last. The owner only
};

/// A child of a scope that runs at once in place of its parent, whose continuation lies open in `slot`.
struct eager_child_control : child_control {
  using child_control::child_control;
  deque_slot* slot = nullptr;
};

/// The open continuations of one worker, from the outermost call to the innermost. They belong to the running fiber,
/// and to the fibers that have begun it, and one another, as eager children. The protocol is that of Cilk-5 (Frigo,
/// Leiserson and Randall 1998): thieves take the outermost under a lock; the owner takes the innermost back without
/// one, unless it may be the same. The owner's fence is left to the thief (Ladan-Mozes, Lee and Vyukov 2011). Each slot
/// has the stack for the call whose continuation it will hold, so a fork that finds its slot has its stack.
class fork_deque {
 public:
  static constexpr std::size_t capacity = 1024;
  using slot = deque_slot;

  fork_deque() = default;
  fork_deque(const fork_deque&) = delete;
  fork_deque& operator=(const fork_deque&) = delete;

  // -- the owner only
  /// Returns the next slot. It has no stack if the running fiber must be made ready first, or a stack or room is
  /// missing.
  [[nodiscard]] PIRN_ALWAYS_INLINE slot* next() const noexcept { return tail_.load(platform::memory_order_relaxed); }
  /// Takes the stack of the next slot, or null, for a continuation that needs no stack.
  [[nodiscard]] fork_stack* take_unused_stack() noexcept { return std::exchange(next()->on, nullptr); }
  /// Opens the continuation, which must be complete, to thieves. A worker must be woken for it, behind a light fence.
  PIRN_ALWAYS_INLINE void push(slot* at, fork_point* point) noexcept {
    at->point = point;
    tail_.store(at + 1, platform::memory_order_release);
  }
  /// Takes back this continuation, which was pushed to that slot. False if it was stolen, or is not the innermost: a
  /// generator that yields in a first half has its consumer fork meanwhile, there or further in.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool pop(slot* at, const fork_point* mine) noexcept {
    // Otherwise the slot may be another worker's, which writes to it.
    return tail_.load(platform::memory_order_relaxed) == at + 1 && at->point == mine && pop(at);
  }
  /// As `pop` above, for one that is the innermost unless it was stolen; if it was, nothing is left.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool pop(slot* at) noexcept {
    if (tail_.load(platform::memory_order_relaxed) != at + 1) [[unlikely]] {  // compared, so that nothing waits for it
      return false;
    }
    tail_.store(at, platform::memory_order_release);
    if (asymmetric_) [[likely]] {
      platform::signal_fence();  // pairs with the heavy fence in `steal`
    } else {
      platform::light_fence();  // pairs with the same
    }
    return head_.load(platform::memory_order_acquire) <= at || pop_contended(at);
  }
  /// Begin and end the time in which there are slots with stacks; nothing is open then.
  void open() noexcept { tail_.store(first(), platform::memory_order_release); }
  void close() noexcept { tail_.store(slots_.get(), platform::memory_order_release); }
  [[nodiscard]] bool full() const noexcept { return next() == end(); }
  /// Takes all back and calls `take` with each, the outermost first. Thieves get nothing meanwhile.
  template <class Take>
  void drain(Take take) noexcept {
    if (next() <= first()) {
      return;
    }
    const platform::spin_guard guard(lock_);
    slot* const tail = next();
    for (slot* each = head_.load(platform::memory_order_relaxed); each != tail; ++each) {
      take(each->point);
    }
    reset(tail);
  }
  /// Whether an address lies on one of the stacks whose continuation was not stolen. May be called by its own thread
  /// wherever that was interrupted.
  [[nodiscard]] bool on_stack(const void* address) const noexcept { return slot_at(address) != nullptr; }
  /// Returns the slot whose stack holds the address, or null. If code runs there, that is the first half of its call.
  /// The stacks before the head are their callers', which may have moved and freed them.
  [[nodiscard]] const slot* slot_at(const void* address) const noexcept {
    for (const slot* each = head_.load(platform::memory_order_relaxed); each < deepest_; ++each) {
      if (each->on != nullptr && each->on->memory.contains(address)) {
        return each;
      }
    }
    return nullptr;
  }
  /// Returns the innermost open continuation, or null if none is open. Called as `on_stack`.
  [[nodiscard]] const fork_point* innermost() const noexcept {
    return next() > first() && head_.load(platform::memory_order_relaxed) < next() ? (next() - 1)->point : nullptr;
  }
  /// The fiber whose continuations are open, or null. Called as `on_stack`.
  [[nodiscard]] const fiber_control* caller() const noexcept {
    const fork_point* const newest = innermost();
    return newest != nullptr ? newest->caller : nullptr;
  }
  /// Keeps thieves out while the owner's thread prints its fibers. It may have interrupted anything, even a `hold`.
  class hold {
   public:
    explicit hold(fork_deque& open) noexcept : open_(open) {
      for (int tries = 0; (held_ = open_.lock_.try_lock()) == false && tries < max_tries; ++tries) {
        platform::yield_thread();
      }
    }
    ~hold() {
      if (held_) {
        open_.lock_.unlock();
      }
    }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;

   private:
    static constexpr int max_tries = 10'000;
    fork_deque& open_;
    bool held_ = false;
  };
  /// Calls `tell` if that continuation is open, with thieves kept out.
  template <class Tell>
  void if_open(const fork_point* which, Tell tell) noexcept {
    const platform::spin_guard guard(lock_);
    slot* const head = head_.load(platform::memory_order_relaxed);
    if (head < next() && std::any_of(head, next(), [which](const slot& each) { return each.point == which; })) {
      tell();
    }
  }
  /// As `innermost`. If a thief has just taken it, the theft is complete.
  [[nodiscard]] const fork_point* innermost_or_stolen() noexcept {
    const fork_point* const found = innermost();
    if (found == nullptr) {
      const platform::spin_guard behind_thief(lock_);
    }
    return found;
  }
  /// Calls `change` with thieves kept out.
  template <class Change>
  void without_thieves(Change change) noexcept {
    const platform::spin_guard guard(lock_);
    change();
  }
  /// Calls `take` with each stack, and keeps no stack. Nothing may be open.
  template <class Take>
  void give_stacks(Take take) noexcept {
    for (; deepest_ != first();) {
      if (fork_stack* const each = std::exchange((--deepest_)->on, nullptr)) {
        take(each);
      }
    }
  }
  void provide(fork_stack* on) noexcept {
    next()->on = on;
    deepest_ = std::max(deepest_, next() + 1);
  }

  // -- any thread
  /// Whether a steal is worth a thief's fence. A hint.
  [[nodiscard]] bool worth_a_look() const noexcept {
    return head_.load(platform::memory_order_relaxed) < tail_.load(platform::memory_order_relaxed);
  }
  /// Calls `take` with the outermost continuation; the owner cannot end that call meanwhile. False if nothing is open,
  /// or another thief is there. One fence of all threads.
  template <class Take>
  [[nodiscard]] bool steal(Take take) noexcept {
    if (!lock_.try_lock()) {
      return false;
    }
    slot* const head = head_.load(platform::memory_order_relaxed);
    head_.store(head + 1, platform::memory_order_release);
    // Pairs with the fence in `pop`: orders the store above before the load below, and the reverse there.
    platform::heavy_fence();
    const bool found = head < tail_.load(platform::memory_order_acquire);
    if (found) {
      take(head->point);
    } else {
      head_.store(head, platform::memory_order_release);
    }
    lock_.unlock();
    return found;
  }

 private:
  [[nodiscard]] PIRN_ALWAYS_INLINE slot* first() const noexcept { return slots_.get() + 1; }
  [[nodiscard]] slot* end() const noexcept { return first() + capacity; }
  /// Removes all slots before `end`, whose stacks and open continuations are gone; those behind move up.
  void reset(slot* end) noexcept;
  /// As `pop`, if a thief may be after the same continuation.
  PIRN_NOINLINE bool pop_contended(slot* at) noexcept;

  const std::unique_ptr<slot[]> slots_ = std::make_unique<slot[]>(capacity + 2);
  platform::atomic<slot*> tail_{slots_.get()};  ///< behind the innermost; written by the owner
  slot* deepest_ = first();                     ///< behind the last that has a stack
  const bool asymmetric_ = platform::fences_are_asymmetric();
  alignas(64) platform::atomic<slot*> head_{first()};  ///< the outermost; written under the lock
  platform::spinlock lock_;
};

/// The state that a worker needs to fork; used by its own thread.
struct fork_state {
  const inherited_context* inherited = nullptr;  ///< of the running fiber, if it may fork at once
  /// Not zero if a worker may have to be woken for a continuation, or if only a fence can tell.
  const platform::atomic<std::uint32_t>* wake = nullptr;
  fork_deque open;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
