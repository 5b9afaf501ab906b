// The addresses of the slabs of all live pools, readable without a lock from a signal handler, which thereby
// recognises a fault address as that of a guard.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// How a slab is divided into slots. Constant while the slab is registered.
struct slab_geometry {
  std::uintptr_t begin = 0;
  std::size_t stride = 0;
  std::size_t guard = 0;
  std::uint32_t slots = 0;
  std::size_t stack_size = 0;  ///< the size that names the class
  bool coloured = false;
};

/// How far `top` of the slot with this index lies below the end of its top page.
constexpr std::size_t colour_step = 128;
constexpr std::size_t colour_count = 24;
constexpr std::size_t colour_span = colour_step * colour_count;
constexpr std::size_t colour_of(std::uint32_t index) noexcept { return index % colour_count * colour_step; }

/// The slot of a live pool that an address lies in.
struct slot_site {
  std::uintptr_t guard_begin = 0;
  std::uintptr_t limit = 0;  ///< end of the guard
  std::uintptr_t top = 0;
  std::uintptr_t end = 0;
  std::size_t stack_size = 0;
  std::size_t high_water = 0;  ///< of the class, as far as sampled
};

/// One registered slab. The states of `version`: odd while it is written or free, even while it may be read.
class slab_entry {
 public:
  slab_entry* next_free = nullptr;  // under the registry's lock
  /// The number of slots that were ever handed out, which are the first ones: only these have guards.
  platform::atomic<std::uint32_t> carved{0};
  /// The class's high-water mark, kept in the entry so that a handler needs to follow no pointer.
  platform::atomic<std::size_t> high_water{0};

 private:
  friend slab_entry* register_slab(const slab_geometry&) noexcept;
  friend void unregister_slab(slab_entry*) noexcept;
  friend bool find_guard(const void*, std::size_t, slot_site&) noexcept;
  friend bool find_slot(const void*, slot_site&) noexcept;
  bool read(slab_geometry& out, std::uint32_t& carved_out, std::size_t& high_water_out) const noexcept;

  platform::atomic<std::uint32_t> version_{1};
  platform::atomic<std::uintptr_t> begin_{0};
  platform::atomic<std::size_t> stride_{0};
  platform::atomic<std::size_t> guard_{0};
  platform::atomic<std::uint32_t> slots_{0};
  platform::atomic<std::size_t> stack_size_{0};
  platform::atomic<bool> coloured_{false};
};

/// Registers a slab; null when all entries (4096 in a process) are taken.
slab_entry* register_slab(const slab_geometry& geometry) noexcept;
void unregister_slab(slab_entry* entry) noexcept;
/// Finds the lowest slot whose guard holds a byte of [address, address + size). Async-signal-safe.
bool find_guard(const void* address, std::size_t size, slot_site& site) noexcept;
/// Finds the slot that has the address between the end of its guard and its end, in a class with guards or without.
/// Async-signal-safe.
bool find_slot(const void* address, slot_site& site) noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
