// Values that belong to coroutines of aco.h and to threads of usched.h, whose structures have no room for them: a hash
// table from their addresses to arrays of values. Without the C++ runtime, so on malloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "coro/c_api/locals.hpp"

namespace pirn_compat {

/// Not thread-safe.
class values_by_owner {
 public:
  constexpr values_by_owner() noexcept = default;
  [[nodiscard]] bool any() const noexcept { return used_ != 0; }
  /// Returns null if it has none.
  [[nodiscard]] pirn_c::locals* find(const void* owner) const noexcept {
    return used_ != 0 ? places_[place_of(owner)].values : nullptr;
  }
  /// As `find`, but makes an array; null without memory.
  [[nodiscard]] pirn_c::locals* find_or_add(const void* owner) noexcept {
    if (pirn_c::locals* const known = find(owner); known != nullptr) {
      return known;
    }
    if (2 * (used_ + 1) > capacity_ && !grow()) {
      return nullptr;
    }
    void* const memory = std::malloc(sizeof(pirn_c::locals));
    if (memory == nullptr) {
      return nullptr;
    }
    auto* const made = new (memory) pirn_c::locals;
    places_[place_of(owner)] = {owner, made};
    ++used_;
    return made;
  }
  /// Forgets the array of the owner, whose values have ended. There must be one.
  void remove(const void* owner) noexcept {
    std::size_t gap = place_of(owner);
    std::free(places_[gap].values);
    if (--used_ == 0) {
      std::free(places_);
      places_ = nullptr;
      capacity_ = 0;
      return;
    }
    // An owner that lies behind and would not be found over the gap moves into it.
    for (std::size_t at = next(gap); places_[at].owner != nullptr; at = next(at)) {
      if (((at - home_of(places_[at].owner)) & (capacity_ - 1)) >= ((at - gap) & (capacity_ - 1))) {
        places_[gap] = places_[at];
        gap = at;
      }
    }
    places_[gap] = {};
  }

 private:
  struct place {
    const void* owner;
    pirn_c::locals* values;  // elsewhere: functions that end values may set others
  };
  [[nodiscard]] std::size_t home_of(const void* owner) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(owner) >> 4) * std::size_t{0x9e3779b1} & (capacity_ - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (capacity_ - 1); }
  [[nodiscard]] std::size_t place_of(const void* owner) const noexcept {
    std::size_t at = home_of(owner);
    while (places_[at].owner != nullptr && places_[at].owner != owner) {
      at = next(at);
    }
    return at;
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
      if (old[i].owner != nullptr) {
        places_[place_of(old[i].owner)] = old[i];
      }
    }
    std::free(old);
    return true;
  }

  place* places_ = nullptr;
  std::size_t capacity_ = 0;  // a power of two, or 0 at first
  std::size_t used_ = 0;
};

}  // namespace pirn_compat
