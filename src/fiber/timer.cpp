// A queue of timers: a heap of deadlines, and a list of the timers for which there was no room.
#include "pirn/fiber/expert/timer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr std::uint32_t children = 4;
constexpr std::size_t line = 64;

/// Returns where entry 0 lies in this memory, so that entry 1, the first child, begins a cache line, and every fourth
/// after it.
template <class Entry>
std::size_t offset_in(const Entry* memory) noexcept {
  static_assert(sizeof(Entry) * children == line);
  return (children - 1 - reinterpret_cast<std::uintptr_t>(memory) / sizeof(Entry)) % children;
}

}  // namespace

timer_queue::timer_queue(std::uint32_t max_entries) : max_entries_(max_entries) {
  if (!grow(std::min(2 * room, max_entries))) {
    std::free(memory_);
    throw std::bad_alloc();
  }
}

timer_queue::~timer_queue() {
  std::free(memory_);
  std::free(slots_);
}

bool timer_queue::grow(std::uint32_t wanted) noexcept {
  const std::ptrdiff_t before = memory_ != nullptr ? entries_ - memory_ : 0;
  // realloc, since it moves the pages of a large block and not the bytes.
  void* const memory = std::realloc(memory_, (std::size_t{wanted} + children) * sizeof(entry));
  if (memory == nullptr) {
    return false;
  }
  memory_ = static_cast<entry*>(memory);
  entries_ = memory_ + offset_in(memory_);
  std::memmove(entries_, memory_ + before, size_ * sizeof(entry));
  // While timers fire, up to a batch of them have slots and no entries.
  void* const slots = std::realloc(slots_, (std::size_t{wanted} + batch) * sizeof(std::uintptr_t));
  if (slots == nullptr) {
    return false;
  }
  slots_ = static_cast<std::uintptr_t*>(slots);
  capacity_ = wanted;
  return true;
}

// ---- the heap -----------------------------------------------------------------------------------------------------

void timer_queue::rise(std::uint32_t at) noexcept {
  const entry moved = entries_[at];
  while (at != 0) {
    const std::uint32_t parent = (at - 1) / children;
    if (entries_[parent].when <= moved.when) {
      break;
    }
    entries_[at] = entries_[parent];
    at = parent;
  }
  entries_[at] = moved;
}

void timer_queue::sink(std::uint32_t at) noexcept {
  const entry moved = entries_[at];
  for (;;) {
    const std::uint32_t first = at * children + 1;
    if (first >= sorted_) {
      break;
    }
    const std::uint32_t end = std::min(first + children, sorted_);
    std::uint32_t least = first;
    for (std::uint32_t each = first + 1; each < end; ++each) {
      least = entries_[each].when < entries_[least].when ? each : least;
    }
    if (moved.when <= entries_[least].when) {
      break;
    }
    entries_[at] = entries_[least];
    at = least;
  }
  entries_[at] = moved;
}

std::uint32_t timer_queue::pop() noexcept {
  const std::uint32_t slot = entries_[0].slot;
  sorted_ = --size_;
  if (size_ != 0) {
    entries_[0] = entries_[size_];
    sink(0);
  }
  return slot;
}

void timer_queue::drop_cancelled_first() noexcept {
  while (size_ != 0 && timer_in(entries_[0].slot) == nullptr) {
    free_slot(pop());
  }
}

void timer_queue::drop_cancelled(std::uint32_t from) noexcept {
  std::uint32_t kept = from;
  for (std::uint32_t i = from; i != size_; ++i) {
    if (timer_in(entries_[i].slot) != nullptr) {
      entries_[kept++] = entries_[i];
    } else {
      free_slot(entries_[i].slot);
    }
  }
  size_ = kept;
}

/// Brings all entries into the heap, and makes room for more unless memory is refused.
void timer_queue::settle() noexcept {
  if (live_ == 0) {
    size_ = sorted_ = made_ = 0;
    free_ = no_slot;
  }
  if (!list_.empty()) [[unlikely]] {
    assign_slots();
  }
  if (size_ - live_ > live_) {
    sorted_ = 0;
  }
  if (sorted_ != size_) {
    drop_cancelled(sorted_);
  }
  if (size_ - sorted_ > sorted_) {
    sorted_ = size_;
    for (std::uint32_t i = size_ / children + 1; i-- > 0;) {  // Floyd 1964
      sink(i);
    }
  } else {
    while (sorted_ != size_) {
      rise(sorted_++);
    }
  }
  if (capacity_ - size_ < room && capacity_ != max_entries_) [[unlikely]] {
    static_cast<void>(
        grow(static_cast<std::uint32_t>(std::min<std::uint64_t>(max_entries_, 2 * std::uint64_t{capacity_}))));
  }
}

// ---- timers for which there was no room ---------------------------------------------------------------------------

void timer_queue::enlist(timer& t) noexcept {
  t.slot = timer::listed;
  list_.push_front(t);
}

void timer_queue::delist(timer& t) noexcept { list_.remove(t); }

void timer_queue::assign_slots() noexcept {
  while (!list_.empty()) {
    if (size_ == capacity_) {
      const std::uint64_t twice = std::min<std::uint64_t>(max_entries_, 2 * std::uint64_t{capacity_});
      if (twice == capacity_ || !grow(static_cast<std::uint32_t>(twice))) {
        return;
      }
    }
    timer& t = *list_.front();
    delist(t);
    insert(t);
  }
}

timer* timer_queue::earliest_listed() const noexcept {
  timer* earliest = list_.front();
  for (timer& each : list_) {
    earliest = each.when < earliest->when ? &each : earliest;
  }
  return earliest;
}

// ---- due timers ---------------------------------------------------------------------------------------------------

platform::time_point timer_queue::next() noexcept {
  settle();
  drop_cancelled_first();
  platform::time_point first = platform::never;
  if (size_ != 0) {
    first = platform::time_point(platform::duration(entries_[0].when));
  }
  if (!list_.empty()) [[unlikely]] {
    first = std::min(first, earliest_listed()->when);
  }
  return first;
}

void timer_queue::fire_one(timer& due) noexcept {
  due.slot = timer::unarmed;
  if (due.wake.agent() == nullptr) {
    auto& calls = static_cast<call_timer&>(due);
    calls.call(calls);
  } else if (due.wake.claim(wake_reason::timed_out)) {
    // The waiter resumes on this worker, so its node outlives this call.
    detail::schedule(*due.wake.agent(), detail::placement::back);
  }
}

void timer_queue::fire_due(platform::time_point now, std::uint32_t limit) noexcept {
  for (std::uint32_t fired = 0; fired < limit;) {
    settle();
    // In order of time, also with timers in the list: then one by one.
    timer* const listed = earliest_listed();
    const platform::time_point until = listed != nullptr ? std::min(now, listed->when) : now;
    std::uint32_t due[batch];
    std::uint32_t count = 0;
    while (count != batch && size_ != 0 && entries_[0].when <= until.time_since_epoch().count()) {
      const std::uint32_t slot = pop();
      if (const timer* const t = timer_in(slot)) {
        __builtin_prefetch(t, 1);
        due[count++] = slot;
      } else {
        free_slot(slot);
      }
    }
    for (std::uint32_t i = 0; i != count; ++i) {
      const timer& t = *timer_in(due[i]);
      if (const detail::agent* const who = t.wake.agent()) {
        __builtin_prefetch(who, 1);
        const char* const frame = reinterpret_cast<const char*>(&t);  // of the sleeper, which runs soon
        for (int at = -192; at <= 192; at += 64) {
          __builtin_prefetch(frame + at, 1);
        }
      }
    }
    for (std::uint32_t i = 0; i != count; ++i) {
      timer* const t = timer_in(due[i]);  // null if an earlier timer has cancelled it
      free_slot(due[i]);
      if (t != nullptr) {
        --live_;
        fire_one(*t);
      }
    }
    if (count != 0) {
      fired += count;
      continue;
    }
    if (listed == nullptr || listed->when > now) {
      return;
    }
    delist(*listed);
    fire_one(*listed);
    ++fired;
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
