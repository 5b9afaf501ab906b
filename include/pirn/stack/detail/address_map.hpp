// A hash table from addresses to pointers, for what few of many objects have and their structures have no room for.
// Without the C++ runtime, so on malloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Has no destructor: an empty table holds no memory. Not thread-safe. Each operation is O(1).
class address_map {
 public:
  constexpr address_map() noexcept = default;
  [[nodiscard]] PIRN_ALWAYS_INLINE bool any() const noexcept { return used_ != 0; }
  /// Returns null if the address has no pointer.
  [[nodiscard]] void* find(const void* key) const noexcept {
    return used_ != 0 ? places_[place_of(key)].value : nullptr;
  }
  /// Adds a pointer for an address that has none. False without memory.
  [[nodiscard]] PIRN_NOINLINE bool add(const void* key, void* value) noexcept {
    if (2 * (used_ + 1) > capacity_ && !grow()) {
      return false;
    }
    places_[place_of(key)] = {key, value};
    ++used_;
    return true;
  }
  /// Forgets the pointer of an address that has one.
  PIRN_NOINLINE void remove(const void* key) noexcept {
    make_gap(place_of(key));
    if (--used_ == 0) {
      std::free(places_);
      places_ = nullptr;
      capacity_ = 0;
    }
  }
  /// Gives the pointer of `from`, if it has one, to `to`, which has none.
  PIRN_NOINLINE void move(const void* from, const void* to) noexcept {
    if (void* const value = find(from); value != nullptr) {
      make_gap(place_of(from));
      places_[place_of(to)] = {to, value};
    }
  }

 private:
  struct place {
    const void* key;
    void* value;
  };
  [[nodiscard]] std::size_t home_of(const void* key) const noexcept {
    // The highest bits of the product depend on all bits of the address: objects may lie a power of two apart.
    const std::uint64_t spread = std::uint64_t{reinterpret_cast<std::uintptr_t>(key)} * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(spread >> (64 - __builtin_ctzll(capacity_)));
  }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (capacity_ - 1); }
  [[nodiscard]] std::size_t place_of(const void* key) const noexcept {
    std::size_t at = home_of(key);
    while (places_[at].key != nullptr && places_[at].key != key) {
      at = next(at);
    }
    return at;
  }
  void make_gap(std::size_t gap) noexcept {
    // A key that lies behind and would not be found over the gap moves into it.
    for (std::size_t at = next(gap); places_[at].key != nullptr; at = next(at)) {
      if (((at - home_of(places_[at].key)) & (capacity_ - 1)) >= ((at - gap) & (capacity_ - 1))) {
        places_[gap] = places_[at];
        gap = at;
      }
    }
    places_[gap] = {};
  }
  [[nodiscard]] bool grow() noexcept {
    const std::size_t before = capacity_;
    place* const old = places_;
    auto* const larger = static_cast<place*>(std::calloc(before != 0 ? 2 * before : 16, sizeof(place)));
    if (larger == nullptr) {
      return false;
    }
    places_ = larger;
    capacity_ = before != 0 ? 2 * before : 16;
    for (std::size_t i = 0; i < before; ++i) {
      if (old[i].key != nullptr) {
        places_[place_of(old[i].key)] = old[i];
      }
    }
    std::free(old);
    return true;
  }

  place* places_ = nullptr;
  std::size_t capacity_ = 0;  // a power of two, or 0 at first
  std::size_t used_ = 0;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
