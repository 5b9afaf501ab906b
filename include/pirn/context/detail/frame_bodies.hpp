// The bodies whose stacks may lie in the frame of a function: all except those on stacks that were mapped for the
// purpose. Code that opens a block on such a stack cannot tell that by its position, and walks; but only if this table
// says that the position is in one of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Whether the stacks that an allocator of this type hands out never lie in a frame.
template <class Allocator>
concept maps_stacks = requires { requires Allocator::maps_stacks; };

/// The stacks of one place. Each is one word: where it begins, in units, and below that its size in units.
class alignas(64) frame_bodies_near {
 public:
  static constexpr std::uint64_t unit = 16;
  static constexpr unsigned size_bits = 20;  // of a size in units; the rest are those of an address in units

  void add(std::uint64_t packed) noexcept {
    for (auto& each : ranges_) {
      std::uint64_t free = 0;
      if (each.load(platform::memory_order_relaxed) == 0 &&
          each.compare_exchange_strong(free, packed, platform::memory_order_relaxed)) {
        return;
      }
    }
    more_.fetch_add(1, platform::memory_order_relaxed);
  }
  void remove(std::uint64_t packed) noexcept {
    for (auto& each : ranges_) {
      if (each.load(platform::memory_order_relaxed) == packed) {
        each.store(0, platform::memory_order_relaxed);
        return;
      }
    }
    more_.fetch_sub(1, platform::memory_order_relaxed);
  }
  /// Whether `position` may be in a stack that does not hold `other` as well.
  [[nodiscard]] bool may_hold(std::uint64_t position, std::uint64_t other) const noexcept {
    for (const auto& each : ranges_) {
      const std::uint64_t packed = each.load(platform::memory_order_relaxed);
      if (packed == 0) [[likely]] {
        continue;
      }
      const std::uint64_t size = (packed & ((std::uint64_t{1} << size_bits) - 1)) * unit;
      const std::uint64_t low = (packed >> size_bits) * unit;
      if (position - low < size && other - low >= size) {
        return true;
      }
    }
    return more_.load(platform::memory_order_relaxed) != 0;
  }

 private:
  platform::atomic<std::uint64_t> ranges_[7]{};
  platform::atomic<std::uint64_t> more_{0};  ///< the stacks for which there was no room
};

/// The stacks of such bodies, by address: a table of the stacks that begin or continue in each 256 KiB. Memory of the
/// user that no allocator gives is not in it, since a coroutine on such memory is made in few instructions: once such a
/// coroutine was made, every position may be in one. The table may say yes for a body that has gone, never no for one
/// that has not. Any thread; some atomic operations each, and no memory is taken.
class frame_bodies {
 public:
  PIRN_NOINLINE static void made(const void* limit, const void* top) noexcept {
    const platform::quiet no_steps;
    if (!each_of(limit, top, [](bucket& near, std::uint64_t packed) noexcept { near.add(packed); })) {
      large_.fetch_add(1, platform::memory_order_relaxed);
    }
  }
  /// Called by code that makes a body on memory of the user, and does not report its end.
  PIRN_ALWAYS_INLINE static void made_anywhere() noexcept {
    if (!anywhere_.load(platform::memory_order_relaxed)) [[unlikely]] {
      anywhere_.store(true, platform::memory_order_relaxed);
    }
  }
  PIRN_NOINLINE static void gone(const void* limit, const void* top) noexcept {
    const platform::quiet no_steps;
    if (!each_of(limit, top, [](bucket& near, std::uint64_t packed) noexcept { near.remove(packed); })) {
      large_.fetch_sub(1, platform::memory_order_relaxed);
    }
  }
  /// Whether a body whose stack does not hold `other` as well may run at this position.
  [[nodiscard]] PIRN_NOINLINE static bool may_hold(std::uint64_t position, std::uint64_t other = UINT64_MAX) noexcept {
    const platform::quiet no_steps;
    return anywhere_.load(platform::memory_order_relaxed) || large_.load(platform::memory_order_relaxed) != 0 ||
           of(position / granule).may_hold(position, other);
  }

 private:
  using bucket = frame_bodies_near;
  static constexpr std::uint64_t unit = bucket::unit;
  static constexpr std::uint64_t granule = std::uint64_t{256} << 10;
  static constexpr std::uint64_t max_granules = 4;

  /// Calls `does` for the places that a stack lies in; false for a stack that lies in too many.
  static bool each_of(const void* limit, const void* top,
                      void (*does)(bucket&, std::uint64_t packed) noexcept) noexcept {
    const auto low = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(limit)) / unit;
    const auto end = (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(top)) + unit - 1) / unit;
    const std::uint64_t first = low * unit / granule;
    const std::uint64_t last = end > low ? (end * unit - 1) / granule : first;
    if (first + max_granules <= last) {
      return false;
    }
    for (std::uint64_t each = first; each <= last; ++each) {
      does(of(each), low << bucket::size_bits | (end - low));
    }
    return true;
  }
  static constexpr std::size_t buckets = 1024;

  static bucket& of(std::uint64_t granule_number) noexcept { return table_[granule_number % buckets]; }

  static inline bucket table_[buckets];
  static inline platform::atomic<std::uint64_t> large_{0};
  static inline platform::atomic<bool> anywhere_{false};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
