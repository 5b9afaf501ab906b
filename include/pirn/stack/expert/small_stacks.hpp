// Stacks without guards, packed side by side: for contexts whose need was proven when they were compiled, and, with a
// band of canaries, for those that are checked whenever they are suspended.
//
//        +-----------------------+ top      16-byte aligned; the next stack begins here
//        | usable, size() bytes  |
//        +-----------------------+ limit
//        | canary, 8 bytes       |  of a value that only this stack has
//        +-----------------------+
//
// A stack with a band has seven more canaries above that one, where its limit would be otherwise. So a frame that
// leaves its first words unwritten is found too.
#pragma once

#include <cstddef>

#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The small stacks of the whole process, in classes of multiples of 16 bytes. Their memory is never given back to the
/// kernel, so a debugger may read any of them. Any thread.
struct small_stacks {
  static constexpr std::size_t min_size = 256;                    ///< bytes of the smallest
  static constexpr std::size_t max_size = std::size_t{32} << 10;  ///< bytes of the largest
  static constexpr std::size_t step = 16;                         ///< bytes from one class to the next

  static constexpr std::size_t band = 64;  ///< bytes of all canaries of a stack with a band

  /// Allocates a stack of at least `size` usable bytes; invalid_size for more than the largest one has.
  [[nodiscard]] static stack_result allocate(std::size_t size) noexcept;
  /// Takes back a stack, on which no code may be running. Its canary must be whole.
  static void give_back(const stack& value) noexcept;
  /// As `allocate`, but with a band: the usable bytes begin at `end_of_band`.
  [[nodiscard]] static stack_result allocate_with_band(std::size_t size) noexcept;
  /// Returns where the usable bytes of a stack with a band begin.
  [[nodiscard]] static char* end_of_band(const stack& value) noexcept {
    return static_cast<char*>(value.limit()) + (band - sizeof(std::uintptr_t));
  }
  /// Whether no code has written into the band of `value`.
  [[nodiscard]] static bool band_is_whole(const stack& value) noexcept {
    constexpr std::size_t words = band / sizeof(std::uintptr_t);
    const auto* const end = reinterpret_cast<const std::uintptr_t*>(end_of_band(value));
    std::uintptr_t changed = 0;
    for (const auto* each = end - words; each != end; ++each) {
      changed |= *each ^ canary_at(each);
    }
    return changed == 0;
  }
  /// Whether `value` is one of these.
  [[nodiscard]] PIRN_ALWAYS_INLINE static bool has(const stack& value) noexcept { return value.owner() == &mark; }
  /// Whether no code has written below the limit of `value`.
  [[nodiscard]] PIRN_ALWAYS_INLINE static bool whole(const stack& value) noexcept {
    const auto* const canary = static_cast<const std::uintptr_t*>(value.limit()) - 1;
    return *canary == canary_at(canary);
  }

 private:
  [[nodiscard]] PIRN_ALWAYS_INLINE static std::uintptr_t canary_at(const void* where) noexcept {
    return reinterpret_cast<std::uintptr_t>(where) ^ static_cast<std::uintptr_t>(0x9e3779b97f4a7c15U);
  }
  static char mark;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
