// Values that belong to coroutines of aco.h and to threads of usched.h, whose structures have no room for them: a hash
// table from their addresses to arrays of values. Without the C++ runtime, so on malloc.
#pragma once

#include <cstdlib>
#include <new>

#include "coro/c_api/locals.hpp"
#include "pirn/stack/detail/address_map.hpp"

namespace pirn_compat {

/// Not thread-safe.
class values_by_owner {
 public:
  constexpr values_by_owner() noexcept = default;
  [[nodiscard]] bool any() const noexcept { return arrays_.any(); }
  /// Returns null if it has none.
  [[nodiscard]] pirn_c::locals* find(const void* owner) const noexcept {
    return static_cast<pirn_c::locals*>(arrays_.find(owner));
  }
  /// As `find`, but makes an array; null without memory.
  [[nodiscard]] pirn_c::locals* find_or_add(const void* owner) noexcept {
    if (pirn_c::locals* const known = find(owner); known != nullptr) {
      return known;
    }
    void* const memory = std::malloc(sizeof(pirn_c::locals));  // elsewhere: functions that end values may set others
    if (memory == nullptr) {
      return nullptr;
    }
    auto* const made = new (memory) pirn_c::locals;
    if (!arrays_.add(owner, made)) {
      std::free(memory);
      return nullptr;
    }
    return made;
  }
  /// Forgets the array of the owner, whose values have ended. There must be one.
  void remove(const void* owner) noexcept {
    std::free(find(owner));
    arrays_.remove(owner);
  }

 private:
  pirn::detail::address_map arrays_;
};

}  // namespace pirn_compat
