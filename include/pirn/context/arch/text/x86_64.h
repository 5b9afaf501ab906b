/* x86-64: the registers, the clobbers and the text of the symmetric switch. */
#pragma once

#include "pirn/context/arch/text/assembly.h"

// The registers of switch_to, transfer_tagging and transfer_last; ../shared/words_in_registers.hpp explains the names.
#define PIRN_FIRST "rdi"
#define PIRN_SECOND "rsi"
#define PIRN_FROM "rdx"
#define PIRN_TO "rcx"
#define PIRN_PC "r12"
#define PIRN_SP "r13"
#define PIRN_FP "r14"
#define PIRN_VALUE0 "r15"
#define PIRN_VALUE1 "rdi"
#define PIRN_VALUE2 "rsi"
#define PIRN_VALUE3 "rdx"
#define PIRN_TO_PC "r8"
#define PIRN_TO_SP "r9"
#define PIRN_TO_FP "r10"

#if defined(__AVX512F__)
#define PIRN_CLOBBER_AVX512                                                                                     \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
      "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define PIRN_CLOBBER_AVX512
#endif
#if defined(__APX_F__)
#define PIRN_CLOBBER_APX \
  , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"
#else
#define PIRN_CLOBBER_APX
#endif
#define PIRN_CLOBBER_FLOAT                                                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",                                   \
      "st(7)" PIRN_CLOBBER_AVX512 PIRN_CLOBBER_APX
#define PIRN_SWITCH_CLOBBERS \
  "rax", "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", PIRN_CLOBBER_FLOAT, "memory", "cc"
#define PIRN_TRANSFER_CLOBBERS "rax", "rbx", "rcx", "r11", PIRN_CLOBBER_FLOAT, "memory", "cc"

#if defined(__CET__) && (__CET__ & 1)
#define PIRN_LANDING "endbr64\n\t"
#else
#define PIRN_LANDING ""
#endif
// Where a suspended side is resumed: at the beginning of a block that the processor fetches at once. The nop is the
// byte whose unwind table a return address is looked up by.
#define PIRN_RESUME_ENTRY "nop\n\t.p2align 4\n" PIRN_RESUME_LABEL PIRN_LANDING

// clang-format off
// Resumes the context at rcx. At the jump rdi and rsi (and r8 in switch_to_with_word) hold the words that go, rcx the
// context, rsp and rbp those of the resumed side; all others are undefined. From the first instruction to the jump the
// tables say that the caller's frame is that of the resumed side, read through rcx:
//   0f 03 72 08 06   DW_CFA_def_cfa_expression, 3 bytes: DW_OP_breg2 (rcx) + 8, DW_OP_deref    CFA = *(rcx + 8), its sp
//   10 10 02 72 00   DW_CFA_expression, register 16, 2 bytes: DW_OP_breg2 (rcx) + 0            return address at rcx + 0
//   10 06 02 72 10   DW_CFA_expression, register 6, 2 bytes: DW_OP_breg2 (rcx) + 16            rbp at rcx + 16
#define PIRN_RESUME_IN_MEMORY                                  \
  PIRN_CFI(".cfi_remember_state")                              \
  PIRN_CFI(PIRN_CFA_IN("2", "8"))                              \
  PIRN_CFI(PIRN_SAVED_IN("16", "2", "0"))                      \
  PIRN_CFI(PIRN_SAVED_IN("6", "2", "16"))                      \
  "movq " PIRN_CONTEXT_SP "(%%rcx), %%rsp\n\t"                 \
  "movq " PIRN_CONTEXT_FP "(%%rcx), %%rbp\n\t"                 \
  "jmpq *" PIRN_CONTEXT_PC "(%%rcx)\n\t"                       \
  PIRN_CFI(".cfi_restore_state")
// Suspends the caller into the context at rdx, with the resume label (in rax) as its pc, and resumes the one at rcx. The
// compiler saves all but pc, sp and fp, since the asm clobbers it. At the resume label rdi and rsi (and r8 in
// switch_to_with_word) hold the words of the resumer, rsp and rbp are this side's again; all others are undefined.
#define PIRN_SWITCH_TEXT                                       \
  "leaq " PIRN_RESUME_ADDRESS "(%%rip), %%rax\n\t"             \
  "movq %%rax, " PIRN_CONTEXT_PC "(%%rdx)\n\t"                 \
  "movq %%rsp, " PIRN_CONTEXT_SP "(%%rdx)\n\t"                 \
  "movq %%rbp, " PIRN_CONTEXT_FP "(%%rdx)\n\t"                 \
  PIRN_RESUME_IN_MEMORY
// clang-format on
