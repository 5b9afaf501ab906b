// Timers of one worker: an implicit heap with four children to a node (Johnson 1975), laid out so that siblings share a
// cache line (LaMarca and Ladner 1996). It holds deadlines and the numbers of slots, and a slot holds the address of
// its timer. So ordering never looks at the timers themselves, which lie on the stacks of waiters and are cold. The
// heap is lazy: an inserted timer waits behind it until the worker looks; a cancelled one leaves an empty slot, which
// goes when its turn comes, or when there are more empty slots than timers. So the deadline of a wait that ends before
// the worker next looks, as nearly all do, is never compared with another.
#pragma once

#include <cstddef>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A deadline that wakes one wait with `wake_reason::timed_out`. Lies on the waiter's stack; must be cancelled (or have
/// fired) before it is destroyed.
struct timer {
  platform::time_point when;             ///< when it is due
  waker wake;                            ///< empty for a `call_timer`
  std::uint32_t slot = unarmed;          ///< for the queue: its slot, or one of the two below
  detail::list_links<timer> links = {};  ///< for the queue: of the list of `listed` timers

  static constexpr std::uint32_t unarmed = ~std::uint32_t{0};  ///< in no queue
  static constexpr std::uint32_t listed = unarmed - 1;         ///< without a slot
  /// Whether it is in a queue.
  [[nodiscard]] bool armed() const noexcept { return slot != unarmed; }
};

/// A timer that calls a function instead. The worker's scheduler makes the call: it must not suspend.
struct call_timer : timer {
  void (*call)(call_timer&) noexcept = nullptr;  ///< called when it is due
};

/// The pending timers of a worker, used by that worker only. An insertion needs no memory: `next` and `fire`, which run
/// on the scheduler's stack, make room for as many as there may be until the next tick. If memory is refused, timers
/// are kept in a list until there is room; `next`, and each timer that fires, then take time linear in its length.
class timer_queue {
 public:
  /// The number of timers that find room from one tick to the next: a worker makes at most as many switches.
  static constexpr std::uint32_t room = 1024;

  /// Takes memory for at most `max_entries`. Throws std::bad_alloc.
  explicit timer_queue(std::uint32_t max_entries = std::uint32_t{1} << 30);
  ~timer_queue();
  timer_queue(const timer_queue&) = delete;
  timer_queue& operator=(const timer_queue&) = delete;

  /// Whether no timer is armed.
  [[nodiscard]] bool empty() const noexcept { return live_ == 0 && list_.empty(); }
  /// Returns when the next timer is due, or `never`. Amortised O(log n) for each timer inserted or fired since.
  [[nodiscard]] platform::time_point next() noexcept;
  /// Inserts the timer of a wait, unless the wait has no deadline. O(1).
  PIRN_ALWAYS_INLINE void arm(timer& t, platform::time_point deadline, const waker& who) noexcept {
    if (deadline != platform::never) {
      t.when = deadline;
      t.wake = who;
      insert(t);
    }
  }
  /// Inserts a timer. O(1).
  PIRN_ALWAYS_INLINE void insert(timer& t) noexcept {
    if (size_ == capacity_) [[unlikely]] {
      enlist(t);
      return;
    }
    const std::uint32_t slot = take_slot();
    slots_[slot] = reinterpret_cast<std::uintptr_t>(&t);
    entries_[size_++] = {t.when.time_since_epoch().count(), slot};
    t.slot = slot;
    ++live_;
  }
  /// Cancels a timer, unless it has fired. O(1), amortised over the tick that follows.
  PIRN_ALWAYS_INLINE void cancel(timer& t) noexcept {
    if (!t.armed()) {
      return;
    }
    if (t.slot == timer::listed) [[unlikely]] {
      delist(t);
    } else {
      --live_;
      if (size_ != sorted_ && entries_[size_ - 1].slot == t.slot) {
        --size_;
        free_slot(t.slot);
      } else {
        slots_[t.slot] = empty_slot;
      }
    }
    t.slot = timer::unarmed;
  }
  /// Fires the timers that are due at `now`, in order of time, but not many more than `limit` of them. Amortised
  /// O(log n) each.
  void fire(platform::time_point now, std::uint32_t limit = ~std::uint32_t{0}) noexcept {
    if (size_ != 0 || !list_.empty()) {
      fire_due(now, limit);
    }
  }

 private:
  struct entry {
    platform::duration::rep when;
    std::uint32_t slot;
  };
  /// How many due timers are taken off the heap before the first of them fires, so that their memory is fetched
  /// meanwhile.
  static constexpr std::uint32_t batch = 16;

 public:
  /// The `limit` of a worker: the fibers that it wakes run before their stacks, which the firing has touched, leave the
  /// cache, and other work need not wait for a thousand that are due at once.
  static constexpr std::uint32_t at_a_tick = 4 * batch;

 private:
  // A slot holds the address of its timer; a free one holds the number of the next, shifted left by one with bit 0 set.
  static constexpr std::uint32_t no_slot = ~std::uint32_t{0} >> 1;
  static constexpr std::uintptr_t empty_slot = (std::uintptr_t{no_slot} << 1) | 1;
  PIRN_ALWAYS_INLINE std::uint32_t take_slot() noexcept {
    if (free_ == no_slot) {
      return made_++;
    }
    const std::uint32_t slot = free_;
    free_ = static_cast<std::uint32_t>(slots_[slot] >> 1);
    return slot;
  }
  PIRN_ALWAYS_INLINE void free_slot(std::uint32_t slot) noexcept {
    slots_[slot] = (std::uintptr_t{free_} << 1) | 1;
    free_ = slot;
  }
  /// Null if the timer was cancelled.
  [[nodiscard]] timer* timer_in(std::uint32_t slot) const noexcept {
    return (slots_[slot] & 1) == 0 ? reinterpret_cast<timer*>(slots_[slot]) : nullptr;
  }

  [[nodiscard]] bool grow(std::uint32_t wanted) noexcept;
  void settle() noexcept;
  void drop_cancelled(std::uint32_t from) noexcept;
  void rise(std::uint32_t at) noexcept;
  void sink(std::uint32_t at) noexcept;
  std::uint32_t pop() noexcept;
  void drop_cancelled_first() noexcept;

  void fire_due(platform::time_point now, std::uint32_t limit) noexcept;
  static void fire_one(timer& due) noexcept;

  PIRN_NOINLINE void enlist(timer& t) noexcept;
  PIRN_NOINLINE void delist(timer& t) noexcept;
  void assign_slots() noexcept;
  [[nodiscard]] timer* earliest_listed() const noexcept;

  entry* memory_ = nullptr;
  entry* entries_ = nullptr;  ///< in `memory_`: a heap up to `sorted_`, then the insertions since the last tick
  std::uintptr_t* slots_ = nullptr;
  std::uint32_t size_ = 0;  ///< of the entries, with those of cancelled timers
  std::uint32_t sorted_ = 0;
  std::uint32_t live_ = 0;  ///< timers that have a slot
  std::uint32_t free_ = no_slot;
  std::uint32_t made_ = 0;  ///< slots that have ever been in use
  std::uint32_t capacity_ = 0;
  std::uint32_t max_entries_;
  detail::intrusive_list<timer> list_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
