// Gives back unused stack memory of suspended fibers, in small steps.
#include "pirn/fiber/detail/stack_trimmer.hpp"

#include <algorithm>

#include "fiber/runtime_state.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/coro/detail/generator_core.hpp"
#include "pirn/coro/detail/locals_here.hpp"
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

/// The most stacks of one fiber that a pass looks at.
constexpr std::size_t max_stacks = 8;

/// Returns the sp at which the code waits that has resumed the body on this stack, of a pool, in which a fiber is
/// suspended at `sp`. Null where that is unknown: only the yield object of a body knows it, and it lies in registers or
/// anywhere unless the body has asked for this (`trim_callers`). Then what lies at the top of a coroutine's or a
/// generator's stack says where it is.
PIRN_NOINLINE __attribute__((no_sanitize("address", "thread"))) const void* caller_of(const slot_site& on,
                                                                                      const void* sp) noexcept {
  constexpr std::uintptr_t largest = 8192;  // of body objects that this finds
  const void* const limit = reinterpret_cast<void*>(on.limit);
  const auto used = reinterpret_cast<std::uintptr_t>(sp);
  const std::uintptr_t lowest = std::max(on.top - std::min(largest, on.top - on.limit), used);
  for (std::uintptr_t at = (on.top - sizeof(locals_owner)) & ~std::uintptr_t{15}; at >= lowest; at -= 16) {
    const void* shown = nullptr;
    // Neither can be mistaken for other bytes: it holds the limit of the stack on which it lies.
    if (const auto& owner = *reinterpret_cast<const locals_owner*>(at); owner.is_of(limit)) {
      shown = owner.caller();
    } else if (const auto& generator = *reinterpret_cast<const generator_control*>(at);
               on.top - at >= sizeof(generator_control) && generator.limit == limit) {
      shown = generator.shown_consumer();
    }
    const auto place = reinterpret_cast<std::uintptr_t>(shown);
    if (place >= used && place < at && place % alignof(void*) == 0) {
      return *static_cast<void* const volatile*>(shown);  // no address while another object holds the caller
    }
  }
  return nullptr;
}

/// Returns the lowest byte of a fiber's stack that the fiber needs, where it is suspended on that at this sp, or has
/// resumed the body in which it waits; null where that is unknown. If the stack of a body lies in a frame of the fiber
/// (`frame_buffer`), frames of the fiber may lie below the sp. But then a root frame that is not the fiber's lies above
/// it, since every context begins with one. A word that only looks like a root frame, left behind by code that has made
/// one elsewhere, keeps the fiber's memory: that is rare in optimized code.
PIRN_NOINLINE __attribute__((no_sanitize("address", "thread"))) const void* lowest_in_use(
    [[maybe_unused]] const fiber_control& f, const void* sp) noexcept {
#if !defined(__x86_64__)
  // There the root frame is not in memory.
  if (frame_bodies::may_hold(reinterpret_cast<std::uintptr_t>(sp))) {
    return nullptr;
  }
#else
  constexpr std::size_t max_words = 4096;  // more is rare, and would cost more to scan than to keep
  const void* const root = arch::detail::entry_plus_8(&arch::root_frame);
  void* const* const end = arch::detail::initial_sp(f.first_frame());
  auto* at = static_cast<void* const*>(sp);
  if (at > end || static_cast<std::size_t>(end - at) > max_words) {
    return nullptr;
  }
  for (; at != end; ++at) {
    if (*at == root && reinterpret_cast<std::uintptr_t>(at) % 16 == 8 && at[2] == nullptr) {
      return nullptr;
    }
  }
#endif
  return static_cast<const char*>(sp) - arch::red_zone;
}

}  // namespace

struct stack_trimmer::batch {
  iovec ranges[idle_trims + max_stacks];
  std::size_t count = 0;
  std::size_t fibers = 0;
  std::size_t prefault;  ///< bytes at the top of each fiber's stack that keep their memory
  bool thieves_out;

  void add(const iovec& unused) noexcept {
    if (unused.iov_len != 0) {
      ranges[count++] = unused;
    }
  }
  void add_unused(const fiber_control& f) noexcept;
};

/// Adds the pages that nothing uses of the stack on which a fiber is suspended and, if that is a body's, of those of
/// its callers, up to the fiber's own or to the first link that is unknown. If a stack lies in a frame of a body, there
/// may be frames below the sp.
void stack_trimmer::batch::add_unused(const fiber_control& f) noexcept {
  const void* sp = f.state.sp;
  for (std::size_t stacks = 0; sp != nullptr && stacks != max_stacks; ++stacks) {
    if (f.memory.contains(sp)) {
      if (const void* const lowest = lowest_in_use(f, sp); lowest != nullptr) {
        add(pages_below(
            f.memory, std::min(static_cast<const char*>(lowest), static_cast<const char*>(f.memory.top()) - prefault)));
      }
      return;
    }
    slot_site site;
    if (frame_bodies::may_hold(reinterpret_cast<std::uintptr_t>(sp)) || !find_slot(sp, site)) {
      return;
    }
    add(pages_above_end_below(stack(reinterpret_cast<void*>(site.limit), reinterpret_cast<void*>(site.top)),
                              static_cast<const char*>(sp) - arch::red_zone));
    sp = caller_of(site, sp);
  }
}

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
  const std::size_t before = found.count;
  found.add_unused(f);
  found.fibers += found.count != before ? 1 : 0;
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
  for (std::size_t looks = busy ? busy_looks : idle_looks; chunk_ != nullptr && looks != 0 && found.count < max_trims;
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
  mine.counters.trimmed.store(mine.counters.trimmed.load(platform::memory_order_relaxed) + found.fibers,
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
