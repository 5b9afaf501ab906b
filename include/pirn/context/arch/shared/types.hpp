// The types of the contract that the ISA files share. Included by those files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "pirn/context/arch/shared/assembly.hpp"  // IWYU pragma: export
#include "pirn/detail/abi.hpp"

#if defined(__GNUC__)
// A part of the runtime of -fsplit-stack, present if a file of this program is compiled with it: the option has no
// macro. Not __morestack itself: calls to it from code of this file would be weak too, so not linked, and linkers
// rewrite its uses.
extern "C" void pirn_split_stack() noexcept asm("__morestack_make_guard") __attribute__((weak));

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch::detail {
/// Runs before main. A constructor rather than the initializer of a variable, whose guard is in the C++ runtime: a
/// program of C that has one object of C++ needs none.
__attribute__((constructor)) inline void refuse_split_stacks() {
  if (&pirn_split_stack != nullptr) {
    std::fputs("pirn: this program contains code built with -fsplit-stack, which does not support pirn's stacks\n",
               stderr);
    std::abort();
  }
}
}  // namespace arch::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

using word = std::uintptr_t;
inline constexpr std::size_t value_words = 4;

/// Returns a word of indeterminate value, for a use that ignores it: costs no instruction.
PIRN_ALWAYS_INLINE word undef_word() noexcept {
  word any;
  asm volatile("" : "=r"(any));  // volatile: otherwise all share one word, kept in a register
  return any;
}

/// A suspended computation, in memory. Filled by `prepare` or by the `from` side of `switch_to`; resuming it once
/// consumes it.
struct context {
  void* pc = nullptr;
  void* sp = nullptr;
  void* fp = nullptr;
};
static_assert(offsetof(context, pc) == 0 && offsetof(context, sp) == sizeof(word) &&
                  offsetof(context, fp) == 2 * sizeof(word),
              "assembly uses the offsets above");

/// The state of a suspended computation as a value that `transfer` keeps in registers.
using peer = context;

/// The bit of `peer::sp` that is free, since stacks are aligned: set, it tags a peer as out of the ordinary.
inline constexpr word peer_tag = 1;
/// Returns `who` with the tag. A tagged peer must not be resumed.
PIRN_ALWAYS_INLINE peer tagged(peer who) noexcept {
  who.sp = reinterpret_cast<void*>(reinterpret_cast<word>(who.sp) | peer_tag);
  return who;
}
/// Whether `who` has the tag: a test of a register and a branch.
PIRN_ALWAYS_INLINE bool is_tagged(const peer& who) noexcept { return (reinterpret_cast<word>(who.sp) & peer_tag) != 0; }
/// Returns the peer that stands for an ended context: tagged, and otherwise null.
PIRN_ALWAYS_INLINE peer ended_peer() noexcept {
  peer none;
  return tagged(none);
}
/// Returns `who` without the tag.
PIRN_ALWAYS_INLINE peer untagged(peer who) noexcept {
  who.sp = reinterpret_cast<void*>(reinterpret_cast<word>(who.sp) & ~peer_tag);
  return who;
}

/// An entry function for contexts resumed by `switch_to`: receives the two message words; must not return.
using switch_entry = void (*)(word, word);
/// An entry function for contexts resumed by `transfer`: receives the resumer as (pc, sp, fp) and the four value
/// words; must not return. PIRN_NONE is part of its type.
typedef void(PIRN_NONE* transfer_entry)(void* pc, void* sp, void* fp, word, word, word, word);

namespace detail {
#if defined(PIRN_KEEP_FP_WORDS)
inline constexpr bool keeps_fp_words = true;
#else
inline constexpr bool keeps_fp_words = false;
#endif
/// Where control words are shared there is nothing to keep.
class shared_fp_words {
 public:
  PIRN_ALWAYS_INLINE void restore() const noexcept {}
};

/// Returns where contexts begin in `start_frame` and return to in `root_frame`: not the first byte, since unwinders
/// look up the byte before a return address.
PIRN_ALWAYS_INLINE void* entry_plus_8(void (*function)()) noexcept {
  return reinterpret_cast<char*>(reinterpret_cast<void*>(function)) + 8;
}

/// Wraps an entry function under a name that an asm may use as a constant. In position-independent code a name is no
/// constant if another module could replace it, and a hidden one cannot be replaced. The entry function is usually
/// inlined into it.
template <transfer_entry entry>
__attribute__((visibility("hidden"))) PIRN_NONE void land(void* pc, void* sp, void* fp, word value0, word value1,
                                                          word value2, word value3) {
  entry(pc, sp, fp, value0, value1, value2, value3);
}
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
