// The types of the contract that the ISA files share, and the macros that put assembly into a header. Included by the
// ISA files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "pirn/detail/abi.hpp"

// Unwind tables inside an asm need the compiler to have opened a table for the function.
#if defined(__GCC_HAVE_DWARF2_CFI_ASM)
#define PIRN_CFI(text) text "\n\t"
#else
#define PIRN_CFI(text) ""
#endif
// Tables for values in another context, as bytes that no assembler interprets. The function around the asm is the
// compiler's, and a .cfi_def_cfa would change the assembler's state: clang's takes the offset for that of the function,
// and not even .cfi_restore_state restores it. Where a later call has arguments on the stack (or `push` is shorter than
// `mov`) it counts from there. Directives that it does not keep (.cfi_register, .cfi_offset, .cfi_same_value,
// .cfi_undefined) may be written as usual; ./dev check verifies that. R and S are DWARF's numbers of registers, R
// up to 31 and S up to 127, and O is from 0 to 63, so that each is one byte (of LEB128). The bytes are:
//   PIRN_CFA_IS      0c    DW_CFA_def_cfa: the CFA is a register plus an offset
//                    R     the register
//                    O     the offset
//   PIRN_CFA_IN      0f    DW_CFA_def_cfa_expression: an expression computes the CFA
//                    03    the expression has 3 bytes
//                    70+R  DW_OP_breg<R>: pushes register R plus an offset
//                    O     the offset
//                    06    DW_OP_deref: replaces that address by the word that lies there
//   PIRN_SAVED_IN    10    DW_CFA_expression: an expression computes the address where a register was saved
//                    S     the saved register
//                    02    the expression has 2 bytes
//                    70+R  DW_OP_breg<R>: pushes register R plus an offset
//                    O     the offset
#define PIRN_CFA_IS(base, offset) ".cfi_escape 0x0c, " base ", " offset
#define PIRN_CFA_IN(base, offset) ".cfi_escape 0x0f, 0x03, 0x70+" base ", " offset ", 0x06"
#define PIRN_SAVED_IN(saved, base, offset) ".cfi_escape 0x10, " saved ", 0x02, 0x70+" base ", " offset
#if defined(__clang__) && __clang_major__ < 19
#define PIRN_SWITCH_INLINE inline PIRN_NOINLINE
#define PIRN_SWITCH_INLINED false
#else
#define PIRN_SWITCH_INLINE PIRN_ALWAYS_INLINE
#define PIRN_SWITCH_INLINED true
#endif
// The attributes of a function that consists of its asm alone, on x86: gcc puts a stack protector's prologue into naked
// functions too, and in the large code model, where it does not optimize, code that finds the global offset table.
#if defined(__code_model_large__) && defined(__PIC__) && !defined(__clang__)
#define PIRN_NAKED_OPTIMIZED , optimize("O1")
#else
#define PIRN_NAKED_OPTIMIZED
#endif
#define PIRN_NAKED                                                                                            \
  __attribute__((naked, noinline, no_stack_protector, no_instrument_function, no_profile_instrument_function, \
                 patchable_function_entry(0) PIRN_NAKED_OPTIMIZED))
// As PIRN_NAKED, where gcc has no naked functions. PIRN_ASM_NAME follows the declaration, PIRN_ASM_FUNCTION defines it;
// NAME is a string. The copies of all objects become one, also where link-time optimization puts them into one
// assembly.
#define PIRN_ASM_NAME(name) asm("pirn_" PIRN_ABI_NAME "_" name) __attribute__((visibility("hidden")))
#define PIRN_ASM_FUNCTION(name, text)                                                                     \
  asm(".ifndef pirn_" PIRN_ABI_NAME "_" name                                                              \
      "\n\t"                                                                                              \
      ".pushsection .text.pirn_" PIRN_ABI_NAME "_" name ",\"axG\",@progbits,pirn_" PIRN_ABI_NAME "_" name \
      ",comdat\n\t"                                                                                       \
      ".balign 4\n\t.weak pirn_" PIRN_ABI_NAME "_" name "\n\t.hidden pirn_" PIRN_ABI_NAME "_" name        \
      "\n\t"                                                                                              \
      ".type pirn_" PIRN_ABI_NAME "_" name                                                                \
      ",@function\n"                                                                                      \
      "pirn_" PIRN_ABI_NAME "_" name ":\n\t.cfi_startproc\n\t" text                                       \
      "\n\t.cfi_endproc\n\t"                                                                              \
      ".size pirn_" PIRN_ABI_NAME "_" name ",.-pirn_" PIRN_ABI_NAME "_" name "\n\t.popsection\n\t.endif")

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
