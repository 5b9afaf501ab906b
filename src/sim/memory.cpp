// The knowledge of an execution about its words: the order of steps, happens-before, and the values that a load may
// see.
#include "sim/memory.hpp"

#include <algorithm>
#include <bit>

#include "sim/schedule.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

constexpr std::size_t first_table_size = 1024;
// The number of newest values of which a load may see one.
constexpr std::size_t max_visible = 7;
// The number of times that a thread may see the same old value.
constexpr std::uint8_t max_stale_reads = 2;

bool acquires(std::memory_order order) noexcept {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

}  // namespace

void location::begin(const void* address, std::uint32_t number) noexcept {
  std::vector<stored> kept = std::move(history);
  kept.clear();
  *this = location();
  history = std::move(kept);
  at = address;
  name = number;
}

memory::memory() : table_(first_table_size) {}

void memory::begin_execution(bool stale) noexcept {
  ++execution_;
  used_ = 0;
  stale_ = stale;
  last_heavy_ = {};
  fenced_ = {};
  places_ = 0;
}

memory::entry& memory::slot(const void* at) noexcept {
  const std::size_t mask = table_.size() - 1;
  auto place = static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(at) * 0x9e3779b97f4a7c15u) >> 32) & mask;
  while (table_[place].execution == execution_ && table_[place].where->at != at) {
    place = (place + 1) & mask;
  }
  return table_[place];
}

location& memory::find(const void* at) noexcept {
  entry& found = slot(at);
  if (found.execution == execution_) [[likely]] {
    return *found.where;
  }
  if (2 * (used_ + 1) > table_.size()) {
    const platform::quiet unseen;
    grow();
    return find(at);
  }
  if (used_ == locations_.size()) {
    const platform::quiet unseen;
    locations_.emplace_back();
  }
  location& made = locations_[used_];
  made.begin(at, used_++);
  found = {execution_, &made};
  return made;
}

void memory::grow() {
  table_.assign(2 * table_.size(), {});
  for (std::uint32_t i = 0; i < used_; ++i) {
    slot(locations_[i].at) = {execution_, &locations_[i]};
  }
}

void memory::construct(const void* at) noexcept {
  entry& found = slot(at);
  if (found.execution != execution_) {
    return;
  }
  location& old = *found.where;
  // The steps stay in order: those at the old object had to come before.
  old.released = {};
  old.holder = -1;
  old.plain_write = 0;
  std::ranges::fill(old.plain_read, 0);
  old.history.clear();
  std::ranges::fill(old.oldest, 0);
  std::ranges::fill(old.looks, 0);
}

void memory::compare(const location& of, access what, unsigned thread, const thread_clocks& clocks, bool bounded,
                     earlier_steps& races) const noexcept {
  const auto consider = [&](unsigned other, const mark& step) {
    if (other != thread && !clocks.order.covers(other, step.time)) {
      races.add(other, step);
    }
  };
  // An unlock and a lock that waits for it cannot change places. Two locks can, and an unlock and a try_lock can.
  if (what != access::unlock) {
    consider(of.writer, of.last_write);
    if (what != access::lock || bounded) {
      consider(of.unlocker, of.last_unlock);
    }
  }
  if (what != access::read) {
    for (std::uint32_t left = of.readers; left != 0; left &= left - 1) {
      const auto reader = static_cast<unsigned>(std::countr_zero(left));
      consider(reader, of.last_read[reader]);
    }
  }
  consider(heavy_thread_, last_heavy_);
}

void memory::order(location& of, access what, unsigned thread, thread_clocks& clocks) noexcept {
  clocks.last_step = {clocks.order.advance(thread), clocks.last_choice};
  clocks.order.join(of.written_order);
  if (last_heavy_.time != 0) {
    clocks.order.join(heavy_order_);
  }
  if (what == access::read) {
    of.last_read[thread] = clocks.last_step;
    of.readers |= only(thread);
    of.read_order.join(clocks.order);
    return;
  }
  clocks.order.join(of.read_order);
  of.written_order = clocks.order;
  of.read_order = clocks.order;
  of.readers = 0;
  if (what == access::unlock) {
    of.unlocker = thread;
    of.last_unlock = clocks.last_step;
  } else {
    of.writer = thread;
    of.last_write = clocks.last_step;
    of.last_unlock = {};
  }
}

void memory::order_heavy(unsigned thread, std::span<thread_clocks* const> all, earlier_steps& races) noexcept {
  thread_clocks& own = *all[thread];
  const vector_clock before = own.order;
  for (unsigned other = 0; other < all.size(); ++other) {
    const thread_clocks& each = *all[other];
    if (!before.covers(other, each.last_step.time)) {
      races.add(other, each.last_step);
    }
    own.order.join(each.order);
  }
  own.last_step = {own.order.advance(thread), own.last_choice};
  heavy_thread_ = thread;
  last_heavy_ = own.last_step;
  heavy_order_ = own.order;
}

void memory::acquire(location& of, thread_clocks& clocks, std::memory_order order) noexcept {
  (acquires(order) ? clocks.seen : clocks.to_acquire).join(of.released, stale_);
}

void memory::release(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order,
                     release_sequence sequence) noexcept {
  clocks.seen.happened.advance(thread);
  const knowledge& given = releases(order) ? clocks.seen : clocks.released;
  if (sequence == release_sequence::continues) {
    of.released.join(given, stale_);
  } else {
    of.released = given;
  }
}

// [atomics.order] in C++20: let one operation on a word have to come before another one on it. Then the fences or
// sequentially consistent operations before the first and behind the second must come in that order too. The order of
// execution so far is the total order.
void memory::fence(thread_clocks& clocks, std::memory_order order) noexcept {
  if (acquires(order)) {
    clocks.seen.join(clocks.to_acquire, stale_);
  }
  if (order == std::memory_order_seq_cst && stale_) {
    clocks.seen.fenced.join(fenced_);
    fenced_ = clocks.seen.fenced;
    fenced_.join(clocks.seen.happened);
    clocks.seen.fence = ++places_;
  }
  if (releases(order)) {
    clocks.released = clocks.seen;
  }
}

unsigned memory::visible(location& of, unsigned thread, const thread_clocks& clocks, std::memory_order order) noexcept {
  if (of.history.empty()) {
    return 0;
  }
  std::size_t oldest = of.oldest[thread];
  if (of.looks[thread] >= max_stale_reads && oldest + 1 < of.history.size()) {
    ++oldest;
  }
  const bool strict = order == std::memory_order_seq_cst;
  const std::uint32_t until = strict ? location::no_place : clocks.seen.fence;
  for (std::size_t i = of.history.size() - 1; i > oldest; --i) {
    const location::stored& each = of.history[i];
    if (clocks.seen.happened.covers_any(each.known) || clocks.seen.fenced.covers_any(each.known) ||
        each.strict < until || (strict && fenced_.covers_any(each.known))) {
      oldest = i;
      break;
    }
  }
  return static_cast<unsigned>(std::min(of.history.size() - oldest, max_visible));
}

std::uint64_t memory::see(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order,
                          unsigned age) noexcept {
  const std::size_t index = of.history.size() - 1 - age;
  if (age == 0 || of.oldest[thread] != index) {
    of.looks[thread] = 0;
  }
  if (age != 0) {
    ++of.looks[thread];
  }
  of.oldest[thread] = static_cast<std::uint32_t>(index);
  location::stored& found = of.history[index];
  if (found.known.of(thread) == vector_clock::no_time) {
    found.known.set(thread, clocks.seen.happened.advance(thread));
  }
  if (order == std::memory_order_seq_cst) {
    found.strict = std::min(found.strict, ++places_);
  }
  (acquires(order) ? clocks.seen : clocks.to_acquire).join(found.released, stale_);
  return found.value;
}

void memory::remember_old(location& of, std::uint64_t value) {
  if (of.history.empty()) {
    const platform::quiet unseen;
    of.history.push_back({value, {}, vector_clock::never(), location::no_place});
  }
}

void memory::remember(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order,
                      std::uint64_t value, release_sequence sequence) noexcept {
  release(of, thread, clocks, order, sequence);
  of.oldest[thread] = static_cast<std::uint32_t>(of.history.size());
  of.looks[thread] = 0;
  const platform::quiet unseen;
  location::stored& made = of.history.emplace_back();
  made.value = value;
  made.released = of.released;
  made.known = vector_clock::never();
  made.known.set(thread, clocks.seen.happened.of(thread));
  made.strict = order == std::memory_order_seq_cst ? ++places_ : location::no_place;
}

int memory::race(location& of, access what, unsigned thread, thread_clocks& clocks) noexcept {
  if (of.plain_write != 0 && of.plain_writer != thread &&
      !clocks.seen.happened.covers(of.plain_writer, of.plain_write)) {
    return static_cast<int>(of.plain_writer);
  }
  const std::uint32_t now = clocks.seen.happened.advance(thread);
  if (what == access::read) {
    of.plain_read[thread] = now;
    return -1;
  }
  for (unsigned other = 0; other < max_threads; ++other) {
    if (other != thread && of.plain_read[other] != 0 && !clocks.seen.happened.covers(other, of.plain_read[other])) {
      return static_cast<int>(other);
    }
  }
  of.plain_writer = thread;
  of.plain_write = now;
  std::ranges::fill(of.plain_read, 0);
  return -1;
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
