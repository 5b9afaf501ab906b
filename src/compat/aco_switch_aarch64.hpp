// AArch64, AAPCS64. The contract and the picture are in aco_switch.hpp.
#pragma once

#include <cstddef>

#include "aco.h"
#include "pirn/context/arch/shared/assembly.hpp"

namespace pirn_aco {

inline constexpr std::size_t kept_words = 18;
static_assert(offsetof(aco_t, fpcr) == 24, "the assembly uses this offset");

}  // namespace pirn_aco

// clang-format off
// At the beginning x0 is `state`, x1 is `to`, and x30 holds the return address. x9 holds sp, and then the sp of `to`. At
// the jump x10 holds the return address of `to`, and sp, x29, x19 to x28 and d8 to d15 are those of `to`; x0 is still `state`. x30 is
// pirn_aco_end, to which a fresh coroutine's function returns; to others it is lost by the call that they return from.
// All other registers are undefined. The tables leave out d8 to d15, which no unwinder needs for finding a caller. Their
// bytes:
//   10 1d 02 71 10   DW_CFA_expression, register 29, 2 bytes: DW_OP_breg1 (x1) + 16     x29 at x1 + 16
#define PIRN_ACO_SWITCH(name, save, restore)                                         \
  PIRN_ACO_FUNCTION(name,                                                            \
                    "mov x9, sp\n\t"                                                 \
                    "stp x30, x9, [x0]\n\t"                                          \
                    "str x29, [x0, #16]\n\t"                                         \
                    save                                                             \
                    "sub sp, sp, #144\n\t"                                           \
                    ".cfi_def_cfa_offset 144\n\t"                                    \
                    "stp x20, x19, [sp, #128]\n\t"                                   \
                    "stp x22, x21, [sp, #112]\n\t"                                   \
                    "stp x24, x23, [sp, #96]\n\t"                                    \
                    "stp x26, x25, [sp, #80]\n\t"                                    \
                    "stp x28, x27, [sp, #64]\n\t"                                    \
                    "stp d9, d8, [sp, #48]\n\t"                                      \
                    "stp d11, d10, [sp, #32]\n\t"                                    \
                    "stp d13, d12, [sp, #16]\n\t"                                    \
                    "stp d15, d14, [sp]\n\t"                                         \
                    ".cfi_offset x19, -8\n\t"                                        \
                    ".cfi_offset x20, -16\n\t"                                       \
                    ".cfi_offset x21, -24\n\t"                                       \
                    ".cfi_offset x22, -32\n\t"                                       \
                    ".cfi_offset x23, -40\n\t"                                       \
                    ".cfi_offset x24, -48\n\t"                                       \
                    ".cfi_offset x25, -56\n\t"                                       \
                    ".cfi_offset x26, -64\n\t"                                       \
                    ".cfi_offset x27, -72\n\t"                                       \
                    ".cfi_offset x28, -80\n\t"                                       \
                    "ldp x10, x9, [x1]\n\t"                                          \
                    /* From the next instruction on the frame is that of `to`. */    \
                    "sub sp, x9, #144\n\t"                                           \
                    ".cfi_register x30, x10\n\t"                                     \
                    PIRN_SAVED_IN("29", "1", "16") "\n\t"                            \
                    "ldr x29, [x1, #16]\n\t"                                         \
                    ".cfi_same_value x29\n\t"                                        \
                    "ldp x20, x19, [sp, #128]\n\t"                                   \
                    "ldp x22, x21, [sp, #112]\n\t"                                   \
                    "ldp x24, x23, [sp, #96]\n\t"                                    \
                    "ldp x26, x25, [sp, #80]\n\t"                                    \
                    "ldp x28, x27, [sp, #64]\n\t"                                    \
                    "ldp d9, d8, [sp, #48]\n\t"                                      \
                    "ldp d11, d10, [sp, #32]\n\t"                                    \
                    "ldp d13, d12, [sp, #16]\n\t"                                    \
                    "ldp d15, d14, [sp]\n\t"                                         \
                    "add sp, sp, #144\n\t"                                           \
                    ".cfi_def_cfa_offset 0\n\t"                                      \
                    restore                                                          \
                    "adrp x30, pirn_aco_end\n\t"                                     \
                    "add x30, x30, :lo12:pirn_aco_end\n\t"                           \
                    /* ret: a jump would need a landing pad behind a call. */        \
                    "ret x10")
// clang-format on

// Loading control words is slower than finding that they are the same already: then it jumps to label 1, where x0, x1,
// x10 and x30 are as before.
#define PIRN_ACO_SAVE_WORDS \
  "mrs x9, fpcr\n\t"        \
  "str w9, [x0, #24]\n\t"
#define PIRN_ACO_RESTORE_WORDS \
  "ldr w9, [x0, #24]\n\t"      \
  "ldr w11, [x1, #24]\n\t"     \
  "cmp w9, w11\n\t"            \
  "b.eq 1f\n\t"                \
  "msr fpcr, x11\n"            \
  "1:\t"
#define PIRN_ACO_SAVE_WORDS_TEXT \
  "mrs x9, fpcr\n\t"             \
  "str w9, [x0]\n\t"             \
  "ret"
#define PIRN_ACO_RETURN_ADDRESS "x30"
#define PIRN_ACO_PROTECTOR_TEXT \
  "\n"                          \
  "pirn_aco_end:\n\t"           \
  "bl pirn_aco_returned\n\t"    \
  "brk #1"
