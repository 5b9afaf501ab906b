// The end of a stack that has no guard: a word there that nothing but running off the stack overwrites.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// Whether stacks of an allocator of this type have such a word: those that lie in a frame, and memory of the caller's,
/// which has none.
template <class Allocator>
inline constexpr bool marks_end = std::is_void_v<Allocator>;

[[noreturn]] PIRN_COLD inline void ran_off_stack(const char* what, const void* limit, const void* top,
                                                 std::uintptr_t sp) noexcept {
  const auto lowest = reinterpret_cast<std::uintptr_t>(limit);
  const std::size_t has = reinterpret_cast<std::uintptr_t>(top) - lowest;
  // Further below is another stack: that of one which it delegates to.
  constexpr std::size_t most = std::size_t{1} << 20;
  const std::size_t needed = has + (lowest - sp < most ? lowest - sp : 1);
  std::fprintf(stderr,
               "pirn: stack overflow in %s: it has %zu bytes without a guard, and needed at least %zu. What lies below "
               "is overwritten. Give it more, or a stack of a pool, which has a guard\n",
               what, has, needed);
  std::abort();
}

/// The word.
class stack_end {
  // Memory of the caller's begins anywhere, and has held other things.
  using word [[gnu::aligned(1), gnu::may_alias]] = std::uint32_t;

 public:
  stack_end() noexcept = default;
  PIRN_ALWAYS_INLINE explicit stack_end(void* limit) noexcept : at_(static_cast<word*>(limit)) {}
  PIRN_ALWAYS_INLINE void put() const noexcept { *at_ = mark; }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool overwritten() const noexcept { return *at_ != mark; }
  /// The same without an object, which sanitizers give room in the frame.
  [[nodiscard]] PIRN_ALWAYS_INLINE static bool overwritten_at(std::uintptr_t limit) noexcept {
    return *reinterpret_cast<const word*>(limit) != mark;
  }
  /// Ends the program with a message if it was.
  PIRN_ALWAYS_INLINE static void check(const char* what, void* limit, const void* top,
                                       std::uintptr_t sp = UINTPTR_MAX) noexcept {
    if (stack_end(limit).overwritten()) [[unlikely]] {
      ran_off_stack(what, limit, top, sp);
    }
  }

 private:
  static constexpr std::uint32_t mark = 0x6e656e64;  // half a word, which an instruction has room for
  word* at_ = nullptr;
};

}  // namespace pirn::inline PIRN_ABI::detail
