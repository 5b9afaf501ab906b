/* PowerPC64, little endian: the registers, the clobbers and the text of the symmetric switch. */
#pragma once

#include "pirn/context/arch/text/assembly.h"

// The registers of the switches: those of the context that is left, and those of the one that is resumed;
// shared/words_in_registers.hpp explains the names.
#define PIRN_FIRST "r3"
#define PIRN_SECOND "r4"
#define PIRN_FROM "r5"
#define PIRN_TO "r6"

#if defined(__ALTIVEC__)
#define PIRN_CLOBBER_VECTOR                                                                                      \
  , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
      "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define PIRN_CLOBBER_VECTOR
#endif
#define PIRN_CLOBBER_FLOAT                                                                                            \
  "fr0", "fr1", "fr2", "fr3", "fr4", "fr5", "fr6", "fr7", "fr8", "fr9", "fr10", "fr11", "fr12", "fr13", "fr14",       \
      "fr15", "fr16", "fr17", "fr18", "fr19", "fr20", "fr21", "fr22", "fr23", "fr24", "fr25", "fr26", "fr27", "fr28", \
      "fr29", "fr30", "fr31" PIRN_CLOBBER_VECTOR
#define PIRN_CLOBBER_REST                                                                                        \
  "r0", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", \
      "r29", "lr", "ctr", "cr0", "cr1", "cr2", "cr3", "cr4", "cr5", "cr6", "cr7", "xer", PIRN_CLOBBER_FLOAT, "memory"
#define PIRN_SWITCH_CLOBBERS "r7", "r8", "r9", "r10", "r11", "r12", PIRN_CLOBBER_REST

// clang-format off
// Puts the address of the resume label into `to`, by way of lr, which the function around has saved since it is
// clobbered. At label 2, the next instruction, lr holds the address of that label. Not for r0, which addi reads as zero.
#define PIRN_LABEL_ADDRESS(to)                          \
  "bcl 20, 31, 2f\n"                                    \
  "2:\n\t"                                              \
  "mflr " to "\n\t"                                     \
  "addi " to ", " to ", " PIRN_RESUME_ADDRESS "-2b\n\t"
// Saves r30 and r2 below the red zone.
#define PIRN_SAVE_TEXT "stdu 1, -320(1)\n\tstd 30, 24(1)\n\tstd 2, 16(1)\n\t"
// The exchange: from the running context to the one whose pc, sp, fp are in r12, r10, r11. It saves this side's r30 and
// r2, and loads those of the other side from below its red zone. At the jump r1, r31, r30 and r2 are the other side's,
// and ctr holds its pc. The registers that shared/words_in_registers.hpp names hold what goes; all others are
// undefined. The tables describe the resumed context from the first instruction on:
//   0c 0a 00          DW_CFA_def_cfa, register 10, offset 0    CFA = r10, its sp
//   .cfi_register     return address (register 65) in r12, r31 in r11
//   .cfi_offset       r30 at CFA - 296, until it is loaded
#define PIRN_EXCHANGE                                   \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IS("10", "0"))                      \
  PIRN_CFI(".cfi_register 65, 12")                      \
  PIRN_CFI(".cfi_register 31, 11")                      \
  PIRN_CFI(".cfi_offset 30, -296")                      \
  "mtctr 12\n\t"                                        \
  PIRN_SAVE_TEXT                                        \
  "ld 30, -296(10)\n\t"                                 \
  "ld 2, -304(10)\n\t"                                  \
  PIRN_CFI(".cfi_same_value 30")                        \
  "mr 31, 11\n\t"                                       \
  "mr 1, 10\n\t"                                        \
  "bctr\n\t"                                            \
  PIRN_CFI(".cfi_restore_state")
// At the resume label r1, r31, r30 and r2 are this side's again. The registers that shared/words_in_registers.hpp names
// hold the peer or the words that came; all others are undefined. The nop is the instruction whose unwind table a
// return address is looked up by.
#define PIRN_RESUME_ENTRY "nop\n" PIRN_RESUME_LABEL
// switch_to: r5 is the caller's context, r6 the one to resume. r7 holds the resume label.
#define PIRN_SWITCH_TEXT                                \
  PIRN_LABEL_ADDRESS("7")                               \
  "std 7, " PIRN_CONTEXT_PC "(5)\n\t"                   \
  "std 1, " PIRN_CONTEXT_SP "(5)\n\t"                   \
  "std 31, " PIRN_CONTEXT_FP "(5)\n\t"                  \
  "ld 12, " PIRN_CONTEXT_PC "(6)\n\t"                   \
  "ld 10, " PIRN_CONTEXT_SP "(6)\n\t"                   \
  "ld 11, " PIRN_CONTEXT_FP "(6)\n\t"                   \
  PIRN_EXCHANGE
// clang-format on
