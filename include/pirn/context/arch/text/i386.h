/* i386: the registers, the clobbers and the text of the symmetric switch. */
#pragma once

#include "pirn/context/arch/text/assembly.h"

// The registers of switch_to: its two messages and its two contexts.
#define PIRN_FIRST "eax"
#define PIRN_SECOND "edx"
#define PIRN_FROM "ecx"
#define PIRN_TO "ebx"

#if defined(__SSE__)
#define PIRN_CLOBBER_SSE , "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7"
#else
#define PIRN_CLOBBER_SSE
#endif
#if defined(__AVX512F__)
#define PIRN_CLOBBER_AVX512 , "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define PIRN_CLOBBER_AVX512
#endif
#define PIRN_CLOBBER_FLOAT \
  "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)" PIRN_CLOBBER_SSE PIRN_CLOBBER_AVX512

// Stores the address of the resume label; it pushes a word meanwhile. At label 2, the next instruction, that word is
// the address of that label.
#if defined(__PIC__)
#define PIRN_STORE_LABEL(to) "call 2f\n2:\n\tpopl " to "\n\taddl $" PIRN_RESUME_ADDRESS "-2b, " to "\n\t"
#else
#define PIRN_STORE_LABEL(to) "movl $" PIRN_RESUME_ADDRESS ", " to "\n\t"
#endif
#if defined(__CET__) && (__CET__ & 1)
#define PIRN_LANDING "endbr32\n\t"
#else
#define PIRN_LANDING ""
#endif
// Where a suspended side is resumed. The nop is the byte whose unwind table a return address is looked up by.
#define PIRN_RESUME_ENTRY "nop\n" PIRN_RESUME_LABEL PIRN_LANDING
#define PIRN_SWITCH_CLOBBERS "edi", PIRN_CLOBBER_FLOAT, "memory", "cc"

// clang-format off
// switch_to: ecx is the caller's context, ebx the one to resume. At the jump eax and edx hold the words that go; esp, ebp
// and esi are those of the resumed side. From the first instruction to the jump the tables say that the caller's frame
// is that of the resumed side, read through ebx:
//   0f 03 73 04 06   DW_CFA_def_cfa_expression, 3 bytes: DW_OP_breg3 (ebx) + 4, DW_OP_deref    CFA = *(ebx + 4)
//   10 08 02 73 00   DW_CFA_expression, register 8, 2 bytes: DW_OP_breg3 (ebx) + 0             return address
//   10 05 02 73 08   DW_CFA_expression, register 5, 2 bytes: DW_OP_breg3 (ebx) + 8             ebp
//   .cfi_offset      esi at CFA - 4, until it is loaded
// At the resume label eax and edx hold the resumer's words. esp, ebp and esi are this side's again; all others are
// undefined.
#define PIRN_SWITCH_TEXT                                \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IN("3", "4"))                       \
  PIRN_CFI(PIRN_SAVED_IN("8", "3", "0"))                \
  PIRN_CFI(PIRN_SAVED_IN("5", "3", "8"))                \
  PIRN_CFI(".cfi_offset esi, -4")                       \
  PIRN_STORE_LABEL(PIRN_CONTEXT_PC "(%%ecx)")           \
  "movl %%esp, " PIRN_CONTEXT_SP "(%%ecx)\n\t"          \
  "movl %%ebp, " PIRN_CONTEXT_FP "(%%ecx)\n\t"          \
  "pushl %%esi\n\t"                                     \
  "movl " PIRN_CONTEXT_SP "(%%ebx), %%edi\n\t"          \
  "movl -4(%%edi), %%esi\n\t"                           \
  PIRN_CFI(".cfi_same_value esi")                       \
  "movl %%edi, %%esp\n\t"                               \
  "movl " PIRN_CONTEXT_FP "(%%ebx), %%ebp\n\t"          \
  "jmpl *" PIRN_CONTEXT_PC "(%%ebx)\n\t"                \
  PIRN_CFI(".cfi_restore_state")
// clang-format on
