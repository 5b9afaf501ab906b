// Finds the variables of the coroutine that the caller runs in, by the caller's stack. Nothing is kept for this in a
// switch: the coroutine has a word in what lies at the top of its stack from its creation to its end, by which that is
// recognized.
#pragma once

#include <unwind.h>

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/coro/detail/local_table.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/stack/stack.hpp"
#include "pirn/stack/this_stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The first part of what lies at the top of a coroutine's stack.
class locals_owner {
 public:
  void* limit;  ///< of the stack

  PIRN_ALWAYS_INLINE explicit locals_owner(void* end) noexcept : limit(end), kind_(lives) {}
  /// Says that the stack has a word at its end.
  PIRN_ALWAYS_INLINE void mark() noexcept { kind_ = lives | has_word_at_end; }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool marked() const noexcept { return (kind_ & has_word_at_end) != 0; }
  /// Whether it has neither a word at the end of its stack nor variables.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool plain() const noexcept { return kind_ == lives; }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool only_marked() const noexcept { return kind_ == (lives | has_word_at_end); }
  /// Must be called before the stack has another use.
  PIRN_ALWAYS_INLINE void gone() noexcept { kind_ = 0; }
  /// Whether this is the owner on the stack with that limit: anything may lie here.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool is_of(const void* end) const noexcept {
    return (kind_ & ~std::uint32_t{has_word_at_end | has_variables}) == lives && limit == end;
  }

  [[nodiscard]] local_table* variables() const noexcept { return (kind_ & has_variables) != 0 ? table_ : nullptr; }
  [[nodiscard]] local_table& made_variables() {
    if (variables() == nullptr) {
      table_ = new local_table;
      kind_ |= has_variables;
    }
    return *table_;
  }
  /// Destroys all variables. A destructor may use older variables, and create new ones.
  PIRN_COLD void end_variables() noexcept {
    if (variables() != nullptr) {
      local_table::end(table_);
      kind_ &= ~std::uint32_t{has_variables};
    }
  }

 private:
  static constexpr std::uint32_t lives = 0x6f776e60;  // by chance nowhere else beside the limit of the same stack
  static constexpr std::uint32_t has_word_at_end = 1;
  static constexpr std::uint32_t has_variables = 2;

  std::uint32_t kind_;
  local_table* table_;  // if `kind_` says so
};

/// Returns the owner that lies at the top of this stack, or null. O(1): the largest body objects are not looked for.
[[nodiscard]] __attribute__((no_sanitize("address", "thread"))) inline locals_owner* owner_on(
    const stack& on) noexcept {
  constexpr arch::word largest = 8192;
  const auto limit = reinterpret_cast<arch::word>(on.limit());
  const arch::word lowest = on.size() > largest ? limit + on.size() - largest : limit;
  arch::word at = (limit + on.size() - sizeof(locals_owner)) & ~arch::word{15};
  for (; at >= lowest; at -= 16) {
    if (auto* const found = reinterpret_cast<locals_owner*>(at); found->is_of(on.limit())) {
      return found;
    }
  }
  return nullptr;
}

/// Returns whether the caller is, or may be, on the stack of another body, which lies in a frame of this coroutine's. A
/// walk of the stack: two microseconds.
PIRN_COLD inline bool runs_in_frame_of(const locals_owner* owner) noexcept {
  constexpr arch::word largest_root = 32;  // of all instruction sets; the root of a body in a frame lies lower
  struct {
    arch::word pc = 0;
    arch::word sp = 0;
  } last;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* found) {
        if (_Unwind_GetIP(frame) != 0) {
          *static_cast<decltype(last)*>(found) = {_Unwind_GetIP(frame), _Unwind_GetCFA(frame)};
        }
        return _URC_NO_REASON;
      },
      &last);
  // Where a frame has no unwind tables, the walk ends early and the caller may be anywhere.
  return last.pc != reinterpret_cast<arch::word>(arch::detail::entry_plus_8(&arch::root_frame)) ||
         reinterpret_cast<arch::word>(owner) - last.sp > largest_root;
}

/// The owner that the calling thread has found last.
struct known_owner {
  arch::word limit = 0;
  arch::word size = 0;
  locals_owner* owner = nullptr;
};

/// Returns the owner of the variables of the caller; null if the caller is in no coroutine, or in one whose stack no
/// pool has mapped.
PIRN_NOINLINE __attribute__((no_sanitize("address", "thread"))) inline locals_owner* locals_owner_here() noexcept {
  known_owner& known = platform::per_thread<known_owner>::here();
  const arch::word here = stack_position();
  // The memory of an owner that has gone may be read if the caller is on the same stack.
  if (here - known.limit >= known.size || !known.owner->is_of(reinterpret_cast<void*>(known.limit))) {
    const stack on = this_stack::bounds();  // not a weak name: a linker would not take its file from a static library
    locals_owner* const found = on.limit() != nullptr ? owner_on(on) : nullptr;
    if (found == nullptr) {
      return nullptr;
    }
    known = {reinterpret_cast<arch::word>(on.limit()), on.size(), found};
  }
  if (frame_bodies::may_hold(here) && runs_in_frame_of(known.owner)) [[unlikely]] {
    return nullptr;
  }
  return known.owner;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
