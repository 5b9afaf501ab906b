// What the ISA files share: the types of the contract, and how assembly is put into a header. Included by them only.
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
// Tables for what lies in another context, as bytes that no assembler looks into. Around the asm is a function of the
// compiler's, and a .cfi_def_cfa would change what the assembler believes of it: clang's takes the offset for that of
// the function, not even .cfi_restore_state gives it back, and where a later call has arguments on the stack (or `push`
// is shorter than `mov`) it counts from there. What it does not keep (.cfi_register, .cfi_offset, .cfi_same_value,
// .cfi_undefined) may be written as usual; ./dev check sees to it. Registers are DWARF's numbers up to 31, offsets are
// from 0 to 63, and the bytes are:
//   0c R O            DW_CFA_def_cfa: the CFA is register R + O
//   0f 03 70+R O 06   DW_CFA_def_cfa_expression, 3 bytes of it, DW_OP_breg<R> O, DW_OP_deref: it is the word at R + O
//   10 S 02 70+R O    DW_CFA_expression for register S, 2 bytes of it, DW_OP_breg<R> O: S was saved at R + O
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
// A function that is nothing but its asm, on x86: gcc puts a stack protector's prologue into naked functions too, and
// in the large code model, where it does not optimize, what finds the global offset table.
#if defined(__code_model_large__) && defined(__PIC__) && !defined(__clang__)
#define PIRN_NAKED_OPTIMIZED , optimize("O1")
#else
#define PIRN_NAKED_OPTIMIZED
#endif
#define PIRN_NAKED                                                                                            \
  __attribute__((naked, noinline, no_stack_protector, no_instrument_function, no_profile_instrument_function, \
                 patchable_function_entry(0) PIRN_NAKED_OPTIMIZED))
// The same where gcc has no naked functions. PIRN_ASM_NAME follows the declaration, PIRN_ASM_FUNCTION defines; NAME
// is a string. The copies of all objects are one, also where link-time optimization puts them into one assembly.
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
// A part of what -fsplit-stack calls, there if a file of this program is compiled with it: the option has no macro. Not
// __morestack itself: what code of this file calls would be weak too, so not linked, and linkers rewrite its uses.
extern "C" void pirn_split_stack() noexcept asm("__morestack_make_guard") __attribute__((weak));

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch::detail {
/// Runs before main. A constructor rather than the initializer of a variable, whose guard is in the C++ runtime: a
/// program of C that has one object of C++ needs none.
__attribute__((constructor)) inline void refuse_split_stacks() {
  if (&pirn_split_stack != nullptr) {
    std::fputs("pirn: this program has code that was built with -fsplit-stack, which knows nothing of pirn's stacks\n",
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

/// A word of which nobody will ask what it holds: costs no instruction.
PIRN_ALWAYS_INLINE word undef_word() noexcept {
  word any;
  asm volatile("" : "=r"(any));  // volatile: else it is one word for all, kept in a register for that
  return any;
}

/// A suspended computation, in memory. Filled by `prepare` or by the `from` side of `switch_to`; resuming it once
/// consumes it.
struct context {
  void* pc = nullptr;
  void* sp = nullptr;
  void* fp = nullptr;
};

/// The same state as a value that `transfer` keeps in registers.
using peer = context;

/// The bit of `peer::sp` that is free, since stacks are aligned: set, it tags a peer as out of the ordinary.
inline constexpr word peer_tag = 1;
/// `who` with the tag. A tagged peer must not be resumed.
PIRN_ALWAYS_INLINE peer tagged(peer who) noexcept {
  who.sp = reinterpret_cast<void*>(reinterpret_cast<word>(who.sp) | peer_tag);
  return who;
}
/// Whether `who` has the tag: a test of a register and a branch.
PIRN_ALWAYS_INLINE bool is_tagged(const peer& who) noexcept { return (reinterpret_cast<word>(who.sp) & peer_tag) != 0; }
/// What stands for a context that has ended: tagged, and null but for that.
PIRN_ALWAYS_INLINE peer ended_peer() noexcept {
  peer none;
  return tagged(none);
}
/// `who` without the tag.
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

/// Where contexts begin in `start_frame` and return to in `root_frame`: not at the first byte, since unwinders look up
/// the byte before a return address.
PIRN_ALWAYS_INLINE void* entry_plus_8(void (*function)()) noexcept {
  return reinterpret_cast<char*>(reinterpret_cast<void*>(function)) + 8;
}

/// An entry function behind a name that an asm may use as a constant: position-independent code has no such name for
/// one that another module could replace, which a hidden one is not. The entry function is usually inlined into it.
template <transfer_entry entry>
__attribute__((visibility("hidden"))) PIRN_NONE void land(void* pc, void* sp, void* fp, word value0, word value1,
                                                          word value2, word value3) {
  entry(pc, sp, fp, value0, value1, value2, value3);
}
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
