// The table of all registered slabs, and the searches in it that a signal handler may make.
#include "stack/slab_registry.hpp"

#include "pirn/stack/detail/shared_stacks.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {
constexpr std::size_t max_slabs = 4096;
// Never destroyed, since a handler may run while the process ends. Without the braces gcc 12 initialises the entries
// with zeros where the atomics are those of explorations.
constinit slab_entry entries[max_slabs] = {};
constinit platform::atomic<std::size_t> used{0};  // entries[0, used) were registered at some time
constinit platform::spinlock lock;
constinit slab_entry* first_free = nullptr;

slot_site site_of(const slab_geometry& slab, std::uint32_t index, std::size_t high_water) noexcept {
  slot_site site;
  site.guard_begin = slab.begin + index * slab.stride;
  site.limit = site.guard_begin + slab.guard;
  site.end = site.guard_begin + slab.stride;
  site.top = site.end - (slab.coloured ? colour_of(index) : 0);
  site.stack_size = slab.stack_size;
  site.high_water = high_water;
  return site;
}
}  // namespace

bool slab_entry::read(slab_geometry& out, std::uint32_t& carved_out, std::size_t& high_water_out) const noexcept {
  // A sequence lock (Boehm 2012): each acquiring load keeps the second read of the version behind it.
  const std::uint32_t before = version_.load(platform::memory_order_acquire);
  if (before % 2 != 0) {
    return false;
  }
  out.begin = begin_.load(platform::memory_order_acquire);
  out.stride = stride_.load(platform::memory_order_acquire);
  out.guard = guard_.load(platform::memory_order_acquire);
  out.slots = slots_.load(platform::memory_order_acquire);
  out.stack_size = stack_size_.load(platform::memory_order_acquire);
  out.coloured = coloured_.load(platform::memory_order_acquire);
  carved_out = carved.load(platform::memory_order_acquire);
  high_water_out = high_water.load(platform::memory_order_acquire);
  return version_.load(platform::memory_order_relaxed) == before;
}

slab_entry* register_slab(const slab_geometry& geometry) noexcept {
  const platform::spin_guard guard(lock);
  slab_entry* entry = first_free;
  if (entry != nullptr) {
    first_free = entry->next_free;
  } else {
    const std::size_t index = used.load(platform::memory_order_relaxed);
    if (index == max_slabs) {
      return nullptr;
    }
    entry = &entries[index];
    used.store(index + 1, platform::memory_order_release);
  }
  // A free entry's version is odd, so readers discard what they read meanwhile. Releasing stores keep the fields behind
  // the version that unregister_slab wrote.
  entry->begin_.store(geometry.begin, platform::memory_order_release);
  entry->stride_.store(geometry.stride, platform::memory_order_release);
  entry->guard_.store(geometry.guard, platform::memory_order_release);
  entry->slots_.store(geometry.slots, platform::memory_order_release);
  entry->stack_size_.store(geometry.stack_size, platform::memory_order_release);
  entry->coloured_.store(geometry.coloured, platform::memory_order_release);
  entry->carved.store(0, platform::memory_order_release);
  entry->high_water.store(0, platform::memory_order_release);
  entry->version_.fetch_add(1, platform::memory_order_acq_rel);
  return entry;
}

void unregister_slab(slab_entry* entry) noexcept {
  const platform::spin_guard guard(lock);
  entry->version_.fetch_add(1, platform::memory_order_acq_rel);
  entry->next_free = first_free;
  first_free = entry;
  shared_stacks::forget();
}

bool find_guard(const void* address, std::size_t size, slot_site& site) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t last = size == 0 ? first : (first + size - 1 < first ? UINTPTR_MAX : first + size - 1);
  const std::size_t count = used.load(platform::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    slab_geometry slab;
    std::uint32_t carved = 0;
    std::size_t high_water = 0;
    if (!entries[i].read(slab, carved, high_water) || slab.guard == 0 || last < slab.begin ||
        first >= slab.begin + carved * slab.stride) {
      continue;
    }
    std::size_t index = first <= slab.begin ? 0 : (first - slab.begin) / slab.stride;
    site = site_of(slab, static_cast<std::uint32_t>(index), high_water);
    if (first >= site.limit && ++index < carved) {  // begins above this slot's guard: the next one is the nearest
      site = site_of(slab, static_cast<std::uint32_t>(index), high_water);
    }
    if (first < site.limit && last >= site.guard_begin) {
      return true;
    }
  }
  return false;
}

bool find_slot(const void* address, slot_site& site) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t count = used.load(platform::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    slab_geometry slab;
    std::uint32_t carved = 0;
    std::size_t high_water = 0;
    if (!entries[i].read(slab, carved, high_water) || at < slab.begin || at >= slab.begin + carved * slab.stride) {
      continue;
    }
    site = site_of(slab, static_cast<std::uint32_t>((at - slab.begin) / slab.stride), high_water);
    if (at >= site.limit && at < site.end) {
      return true;
    }
  }
  return false;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
