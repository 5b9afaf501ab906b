// Gives back unused stack memory of suspended fibers, in small steps.
#include "pirn/fiber/detail/stack_trimmer.hpp"

#include <algorithm>

#include "fiber/runtime_state.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "stack/address_space.hpp"
#include "stack/slab_registry.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

// The limits of a step: some 50 microseconds of an idle worker, less than 20 in a millisecond of a busy one.
constexpr std::size_t idle_looks = 2048;
constexpr std::size_t idle_trims = 64;
constexpr std::size_t busy_looks = 512;
constexpr std::size_t busy_trims = 8;
constexpr auto busy_pause = std::chrono::milliseconds(1);

constexpr std::uint32_t trimmed_bit = 1;

/// Returns a hash of a fiber and its present wait, in the 31 bits above the bit that says whether it was trimmed.
/// Collisions are rare, and then one fiber is trimmed a pass too early or not in this wait.
std::uint32_t note_of(const fiber_control& f) noexcept {
  return static_cast<std::uint32_t>((f.number() * 0x9e3779b97f4a7c15U) >> 33 ^ f.epoch()) << 1;
}

/// Returns the pages that nothing uses of the stack of a body (a coroutine, a generator) in which a fiber is suspended
/// at this sp; an empty range where that is unknown. If a stack lies in one of its frames, there may be frames below
/// the sp. Where the frames of the fiber end on its own stack, and on those of bodies in between, is only known to the
/// body that was resumed from there.
iovec unused_of_body(const void* sp) noexcept {
  slot_site site;
  if (frame_bodies::may_hold(reinterpret_cast<std::uintptr_t>(sp)) || !find_slot(sp, site)) {
    return {};
  }
  const stack body(reinterpret_cast<void*>(site.limit), reinterpret_cast<void*>(site.top));
  return pages_below(body, static_cast<const char*>(sp) - arch::red_zone);
}

/// Returns the lowest byte that a fiber that is suspended on its own stack needs of it; null where that is unknown. If
/// the stack of a body lies in a frame of the fiber (`frame_buffer`), frames of the fiber may lie below the sp. But
/// then a root frame that is not the fiber's lies above it, since every context begins with one. A word that only looks
/// like a root frame, left behind by code that has made one elsewhere, keeps the fiber's memory: that is rare in
/// optimized code.
PIRN_NOINLINE __attribute__((no_sanitize("address", "thread"))) const void* lowest_in_use(
    const fiber_control& f) noexcept {
#if !defined(__x86_64__)
  // There the root frame is not in memory.
  if (frame_bodies::may_hold(reinterpret_cast<std::uintptr_t>(f.state.sp))) {
    return nullptr;
  }
#else
  constexpr std::size_t max_words = 4096;  // more is rare, and would cost more to scan than to keep
  const void* const root = arch::detail::entry_plus_8(&arch::root_frame);
  void* const* const end = arch::detail::initial_sp(f.first_frame());
  void* const* at = static_cast<void**>(f.state.sp);
  if (at > end || static_cast<std::size_t>(end - at) > max_words) {
    return nullptr;
  }
  for (; at != end; ++at) {
    if (*at == root && reinterpret_cast<std::uintptr_t>(at) % 16 == 8 && at[2] == nullptr) {
      return nullptr;
    }
  }
#endif
  return static_cast<const char*>(f.state.sp) - arch::red_zone;
}

/// Returns the pages that nothing uses of the stack on which a fiber is suspended; an empty range where that is
/// unknown.
iovec unused_pages(const fiber_control& f, std::size_t prefault) noexcept {
  if (!f.memory.contains(f.state.sp)) {
    return unused_of_body(f.state.sp);
  }
  const void* const lowest = lowest_in_use(f);
  return lowest != nullptr ? pages_below(f.memory, std::min(static_cast<const char*>(lowest),
                                                            static_cast<const char*>(f.memory.top()) - prefault))
                           : iovec{};
}

}  // namespace

struct stack_trimmer::batch {
  iovec ranges[idle_trims];
  std::size_t count = 0;
  std::size_t prefault;  ///< bytes at the top of each fiber's stack that keep their memory
  bool thieves_out;
};

void stack_trimmer::begin(platform::time_point now) noexcept {
  chunk_ = block_chunk::newest();
  index_ = waiting_ = 0;
  begun_ = now;
}

void stack_trimmer::end() noexcept {
  chunk_ = nullptr;
  all_ = false;
  // If no fiber was noted, no pass is needed until fibers have run.
  next_ = waiting_ != 0 && after_ > platform::duration::zero() ? platform::later(begun_, after_) : platform::never;
}

void stack_trimmer::look_at(const fiber_control& f, std::uint32_t& note, batch& found) noexcept {
  if (!f.waiting() || f.state.pc == nullptr || small_stacks::has(f.memory) ||
      (f.migratable() && !f.migration_disabled() && !found.thieves_out)) {
    return;
  }
  const std::uint32_t now = note_of(f);
  if ((note & ~trimmed_bit) != now) {
    note = now;
    if (!all_) {
      ++waiting_;
      return;
    }
  } else if ((note & trimmed_bit) != 0) {
    return;
  }
  note |= trimmed_bit;
  if (const iovec unused = unused_pages(f, found.prefault); unused.iov_len != 0) {
    found.ranges[found.count++] = unused;
  }
}

void stack_trimmer::step(worker& mine, platform::time_point now, bool busy) noexcept {
  if (requested_.load(platform::memory_order_relaxed)) {
    requested_.exchange(false, platform::memory_order_acquire);
    begin(now);
    all_ = true;
  } else if (chunk_ == nullptr) {
    begin(now);
  }
  const stealable_queue::hold hold(mine.stealable, mine.owner.workers);
  batch found;
  found.thieves_out = hold.alone();
  found.prefault = mine.owner.pool.options().prefault;
  const std::size_t max_trims = busy ? busy_trims : idle_trims;
  for (std::size_t looks = busy ? busy_looks : idle_looks; chunk_ != nullptr && looks != 0 && found.count != max_trims;
       --looks) {
    const auto& f = *reinterpret_cast<const fiber_control*>(chunk_->blocks[index_]);
    if (f.home() == &mine && f.lives()) {
      look_at(f, chunk_->notes[index_], found);
    }
    if (++index_ == block_chunk::blocks_in_one) {
      index_ = 0;
      chunk_ = chunk_->next;
    }
  }
  give_memory_back(found.ranges, found.count);
  mine.counters.trimmed.store(mine.counters.trimmed.load(platform::memory_order_relaxed) + found.count,
                              platform::memory_order_release);
  if (chunk_ == nullptr) {
    end();
  } else {
    next_ = busy ? now + busy_pause : now;
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
