/* RISC-V 64: the registers, the clobbers and the text of the symmetric switch. */
#pragma once

#include "pirn/context/arch/text/assembly.h"

// The registers of the switches: those of the context that is left, and those of the one that is resumed;
// shared/words_in_registers.hpp explains the names.
#define PIRN_FIRST "a0"
#define PIRN_SECOND "a1"
#define PIRN_FROM "a2"
#define PIRN_TO "a3"

#if defined(__riscv_flen)
#define PIRN_CLOBBER_SCALAR                                                                                         \
  "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10", "ft11", "fs0", "fs1", "fs2", "fs3", \
      "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6",    \
      "fa7",
#else
#define PIRN_CLOBBER_SCALAR
#endif
#if defined(__riscv_vector)
#define PIRN_CLOBBER_VECTOR                                                                                           \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", \
      "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "vl", "vtype",
#else
#define PIRN_CLOBBER_VECTOR
#endif
#define PIRN_CLOBBER_FLOAT PIRN_CLOBBER_SCALAR PIRN_CLOBBER_VECTOR "memory"
#define PIRN_CLOBBER_REST \
  "ra", "t0", "t1", "t2", "t6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", PIRN_CLOBBER_FLOAT
#define PIRN_SWITCH_CLOBBERS "t3", "t4", "t5", "a4", "a5", "a6", PIRN_CLOBBER_REST

// clang-format off
// The exchange: from the running context to the one whose pc, sp, fp are in t3, t4, t5. It pushes this side's s1 and
// loads that of the other side from below its sp. At the jump sp, s0 and s1 are the other side's. The registers that
// shared/words_in_registers.hpp names hold what goes; all others are undefined. The tables describe the resumed context
// from the first instruction on:
//   0c 1d 00          DW_CFA_def_cfa, register 29, offset 0    CFA = t4, its sp
//   .cfi_register     return address in t3, s0 in t5
//   .cfi_offset       s1 at CFA - 16, until it is loaded
#define PIRN_EXCHANGE                                   \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IS("29", "0"))                      \
  PIRN_CFI(".cfi_register ra, t3")                      \
  PIRN_CFI(".cfi_register s0, t5")                      \
  PIRN_CFI(".cfi_offset s1, -16")                       \
  "addi sp, sp, -16\n\t"                                \
  "sd s1, 0(sp)\n\t"                                    \
  "ld s1, -16(t4)\n\t"                                  \
  PIRN_CFI(".cfi_same_value s1")                        \
  "mv s0, t5\n\t"                                       \
  "mv sp, t4\n\t"                                       \
  "jr t3\n\t"                                           \
  PIRN_CFI(".cfi_restore_state")
// At the resume label sp, s0 and s1 are this side's again. The registers that shared/words_in_registers.hpp names hold
// the peer or the words that came; all others are undefined. The nop is the instruction whose unwind table a return
// address is looked up by.
#define PIRN_RESUME_ENTRY "nop\n" PIRN_RESUME_LABEL
// switch_to: a2 is the caller's context, a3 the one to resume. t0 holds the resume label.
#define PIRN_SWITCH_TEXT                                \
  "lla t0, " PIRN_RESUME_ADDRESS "\n\t"                 \
  "sd t0, " PIRN_CONTEXT_PC "(a2)\n\t"                  \
  "sd sp, " PIRN_CONTEXT_SP "(a2)\n\t"                  \
  "sd s0, " PIRN_CONTEXT_FP "(a2)\n\t"                  \
  "ld t3, " PIRN_CONTEXT_PC "(a3)\n\t"                  \
  "ld t4, " PIRN_CONTEXT_SP "(a3)\n\t"                  \
  "ld t5, " PIRN_CONTEXT_FP "(a3)\n\t"                  \
  PIRN_EXCHANGE
// clang-format on
