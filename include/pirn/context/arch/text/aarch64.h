/* AArch64: the registers, the clobbers and the text of the symmetric switch. */
#pragma once

#include "pirn/context/arch/text/assembly.h"

// The registers of the switches: those of the context that is left, and those of the one that is resumed;
// shared/words_in_registers.hpp explains the names.
#define PIRN_FIRST "x0"
#define PIRN_SECOND "x1"
#define PIRN_FROM "x2"
#define PIRN_TO "x3"
#define PIRN_TO_PC "x9"
#define PIRN_TO_SP "x10"
#define PIRN_TO_FP "x11"
#if defined(__ARM_FEATURE_SVE)
#define PIRN_CLOBBER_SVE \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "ffr"
#else
#define PIRN_CLOBBER_SVE
#endif
#define PIRN_CLOBBER_FLOAT                                                                                            \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", \
      "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",                      \
      "v31" PIRN_CLOBBER_SVE
#define PIRN_CLOBBER_REST \
  "x7", "x8", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x30", PIRN_CLOBBER_FLOAT, "memory", "cc"
#define PIRN_SWITCH_CLOBBERS \
  "x4", "x5", "x6", "x9", "x10", "x11", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", PIRN_CLOBBER_REST

// clang-format off
// The exchange: from the running context to the one whose pc, sp, fp are in x9, x10, x11. It pushes this side's x19 and
// loads that of the other side from below its sp. At the jump sp, x29 and x19 are the other side's. The registers that
// shared/words_in_registers.hpp names hold what goes; all others are undefined. The tables describe the resumed context
// from the first instruction on:
//   0c 0a 00          DW_CFA_def_cfa, register 10, offset 0    CFA = x10, its sp
//   .cfi_register     return address in x9, x29 in x11
//   .cfi_offset       x19 at CFA - 16, until it is loaded
#define PIRN_EXCHANGE_TEXT                              \
  PIRN_CFI(PIRN_CFA_IS("10", "0"))                      \
  PIRN_CFI(".cfi_register x30, x9")                     \
  PIRN_CFI(".cfi_register x29, x11")                    \
  PIRN_CFI(".cfi_offset x19, -16")                      \
  "str x19, [sp, #-16]!\n\t"                            \
  "ldr x19, [x10, #-16]\n\t"                            \
  PIRN_CFI(".cfi_same_value x19")                       \
  "mov x29, x11\n\t"                                    \
  "mov sp, x10\n\t"                                     \
  "br x9\n\t"
#if defined(__ARM_FEATURE_PAC_DEFAULT)
#define PIRN_EXCHANGE "b pirn_v1_exchange\n\t"
#else
#define PIRN_EXCHANGE                                   \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_EXCHANGE_TEXT                                    \
  PIRN_CFI(".cfi_restore_state")
#endif
// At the resume label sp, x29 and x19 are this side's again. The registers that shared/words_in_registers.hpp names
// hold the peer or the words that came; all others are undefined. The nop is the instruction whose unwind table a
// return address is looked up by, and hint #36 (bti j) is the landing pad.
#define PIRN_RESUME_ENTRY "nop\n" PIRN_RESUME_LABEL "hint #36"
// switch_to: x2 is the caller's context, x3 the one to resume. x16 holds the resume label, x17 sp.
#define PIRN_SWITCH_TEXT                                \
  "adr x16, " PIRN_RESUME_ADDRESS "\n\t"                \
  "mov x17, sp\n\t"                                     \
  "stp x16, x17, [x2, #" PIRN_CONTEXT_PC "]\n\t"        \
  "str x29, [x2, #" PIRN_CONTEXT_FP "]\n\t"             \
  "ldp x9, x10, [x3, #" PIRN_CONTEXT_PC "]\n\t"         \
  "ldr x11, [x3, #" PIRN_CONTEXT_FP "]\n\t"             \
  PIRN_EXCHANGE
// clang-format on
#if defined(__ARM_FEATURE_PAC_DEFAULT)
// The exchange as a function; one for objects of C and of C++.
__asm__(PIRN_DEFINE_FUNCTION("pirn_v1_exchange", PIRN_EXCHANGE_TEXT));
#endif
