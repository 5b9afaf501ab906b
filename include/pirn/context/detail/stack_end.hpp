// The end of a stack that has no guard: a word there that only an overflow overwrites.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <unwind.h>

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Whether stacks of an allocator of this type have such a word: stacks that lie in a frame, and memory of the caller,
/// which has no allocator.
template <class Allocator>
inline constexpr bool marks_end = std::is_void_v<Allocator>;

/// How far below a stack, in bytes, an sp may be that has run off that stack. Further below is another stack: that of a
/// coroutine to which it delegates.
inline constexpr std::size_t near_below = std::size_t{1} << 20;

/// How many bytes below its stacks an allocator of this type has, which only an overflow writes to: a multiple of 16,
/// as the address of such a stack is.
template <class Allocator>
inline constexpr std::size_t margin_below = 0;

/// Returns whether the caller is on another stack than the one of `size` bytes at `limit`: whether a walk comes to the
/// root of a stack without a frame in that one. False where a frame has no unwind tables. Takes two microseconds.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline bool runs_on_another_stack(const void* limit, std::size_t size) noexcept {
  struct {
    std::uintptr_t limit;
    std::size_t size;
    bool elsewhere = false;
  } walk{reinterpret_cast<std::uintptr_t>(limit), size};
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* raw) {
        auto& found = *static_cast<decltype(walk)*>(raw);
        found.elsewhere = _Unwind_GetIP(frame) == 0;
        // A frame ends where that of its caller begins. So one that ends at the limit is the last on the stack below.
        return _Unwind_GetCFA(frame) - found.limit - 1 < found.size ? _URC_END_OF_STACK : _URC_NO_REASON;
      },
      &walk);
  return walk.elsewhere;
}

/// Returns the name of the type of a body, in a longer text.
using name_of_body = const char* (*)() noexcept;
/// Such a function.
template <class Body>
const char* body_name() noexcept {
  return __PRETTY_FUNCTION__;
}

/// Ends the program with a message that names the body, if that is given.
[[noreturn]] PIRN_COLD PIRN_ENDS_PROCESS inline void ran_off_stack(const char* what, const void* limit, const void* top,
                                                                   std::uintptr_t sp,
                                                                   name_of_body body = nullptr) noexcept {
  const auto lowest = reinterpret_cast<std::uintptr_t>(limit);
  const std::size_t has = reinterpret_cast<std::uintptr_t>(top) - lowest;
  std::fprintf(stderr, "pirn: stack overflow in %s: its stack has %zu bytes and no guard, but it needed ", what, has);
  if (lowest - sp < near_below) {
    std::fprintf(stderr, "at least %zu", has + (lowest - sp));
  } else {
    std::fputs("more", stderr);
  }
  std::fputs(
      ". The memory below the stack is overwritten. Use a larger stack (an unwind alone takes some 5 KB), or one from "
      "a pool, which has a guard",
      stderr);
  // The text is "... body_name() [Body = <type>]", with gcc "[with Body = <type>]".
  const char* const name = body != nullptr ? std::strstr(body(), "Body = ") : nullptr;
  if (name != nullptr) {
    const char* const type = name + std::strlen("Body = ");
    std::fprintf(stderr, ". Its body is %.*s", static_cast<int>(std::strlen(type) - 1), type);
  }
  std::fputc('\n', stderr);
  std::abort();
}

/// The word, as functions of its place: sanitizers would give an object of it room in the frame.
///
/// A frame may pass over it without a write. So a stack with a margin has more words, which fill the margin: each frame
/// that is smaller than the margin writes at least its return address there. A test of these is for the end of a body,
/// that of the first word for each turn.
class stack_end {
  // Memory of the caller's begins anywhere, and has held other things.
  using word [[gnu::aligned(1), gnu::may_alias]] = std::uint32_t;
  typedef std::uint32_t words __attribute__((vector_size(16), may_alias));

 public:
  PIRN_ALWAYS_INLINE static void put(void* limit) noexcept { *static_cast<word*>(limit) = mark; }
  [[nodiscard]] PIRN_ALWAYS_INLINE static bool overwritten(std::uintptr_t limit) noexcept {
    return *reinterpret_cast<const word*>(limit) != mark;
  }
  /// Ends the program with a message if the word was overwritten.
  PIRN_ALWAYS_INLINE static void check(const char* what, void* limit, const void* top, std::uintptr_t sp = UINTPTR_MAX,
                                       name_of_body body = nullptr) noexcept {
    if (overwritten(reinterpret_cast<std::uintptr_t>(limit))) [[unlikely]] {
      ran_off_stack(what, limit, top, sp, body);
    }
  }

  template <std::size_t Margin>
  PIRN_ALWAYS_INLINE static void put_below(void* limit) noexcept {
    static_assert(Margin % sizeof(words) == 0);
    const words marks = {mark, mark, mark, mark};
    for (std::size_t below = sizeof(words); below <= Margin; below += sizeof(words)) {
      *reinterpret_cast<words*>(static_cast<char*>(limit) - below) = marks;
    }
  }
  template <std::size_t Margin>
  [[nodiscard]] PIRN_ALWAYS_INLINE static bool overwritten_below(std::uintptr_t limit) noexcept {
    const words marks = {mark, mark, mark, mark};
    words changed = {};
    for (std::size_t below = sizeof(words); below <= Margin; below += sizeof(words)) {
      changed |= *reinterpret_cast<const words*>(limit - below) ^ marks;
    }
    return (changed[0] | changed[1] | changed[2] | changed[3]) != 0;
  }

 private:
  static constexpr std::uint32_t mark = 0x6e656e64;  // half a word, which an instruction has room for
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
