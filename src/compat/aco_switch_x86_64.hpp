// x86-64, System V. The contract and the picture are in aco_switch.hpp.
#pragma once

#include <cstddef>

#include "aco.h"
#include "pirn/context/arch/shared/assembly.hpp"

namespace pirn_aco {

inline constexpr std::size_t kept_words = 5;
static_assert(offsetof(aco_t, x87_control) == 24 && offsetof(aco_t, mxcsr) == 28, "the assembly uses these offsets");

}  // namespace pirn_aco

// clang-format off
// At the beginning rdi is `state`, rsi is `to`, and rsp points to the return address. Then rax holds that address and
// rcx the sp behind it, through which the frame is found: the registers are stored below rsp at no instruction. From the
// load of rcx on, rdx and rcx hold the return address and sp of `to`. At the jump rsp, rbp, rbx and r12 to r15 are those
// of `to`, and rax is `state`; all others are undefined. The bytes of the tables:
//   0c 02 00         DW_CFA_def_cfa, register 2, offset 0                               CFA = rcx
//   10 06 02 74 10   DW_CFA_expression, register 6, 2 bytes: DW_OP_breg4 (rsi) + 16     rbp at rsi + 16
#define PIRN_ACO_SWITCH(name, save, restore)                                         \
  PIRN_ACO_FUNCTION(name,                                                            \
                    "movq (%rsp), %rax\n\t"                                          \
                    "leaq 8(%rsp), %rcx\n\t"                                         \
                    "movq %rax, 0(%rdi)\n\t"                                         \
                    "movq %rcx, 8(%rdi)\n\t"                                         \
                    "movq %rbp, 16(%rdi)\n\t"                                        \
                    save                                                             \
                    PIRN_CFA_IS("2", "0") "\n\t"                                     \
                    ".cfi_register rip, rax\n\t"                                     \
                    /* The topmost slot was that of the return address. */           \
                    "leaq -40(%rcx), %rsp\n\t"                                       \
                    "movq %rbx, -8(%rcx)\n\t"                                        \
                    "movq %r12, -16(%rcx)\n\t"                                       \
                    "movq %r13, -24(%rcx)\n\t"                                       \
                    "movq %r14, -32(%rcx)\n\t"                                       \
                    "movq %r15, -40(%rcx)\n\t"                                       \
                    ".cfi_offset rbx, -8\n\t"                                        \
                    ".cfi_offset r12, -16\n\t"                                       \
                    ".cfi_offset r13, -24\n\t"                                       \
                    ".cfi_offset r14, -32\n\t"                                       \
                    ".cfi_offset r15, -40\n\t"                                       \
                    "movq 0(%rsi), %rdx\n\t"                                         \
                    /* From the next instruction on the frame is that of `to`. */    \
                    "movq 8(%rsi), %rcx\n\t"                                         \
                    ".cfi_register rip, rdx\n\t"                                     \
                    PIRN_SAVED_IN("6", "4", "16") "\n\t"                             \
                    "leaq -40(%rcx), %rsp\n\t"                                       \
                    "movq 16(%rsi), %rbp\n\t"                                        \
                    ".cfi_same_value rbp\n\t"                                        \
                    "movq -8(%rcx), %rbx\n\t"                                        \
                    "movq -16(%rcx), %r12\n\t"                                       \
                    "movq -24(%rcx), %r13\n\t"                                       \
                    "movq -32(%rcx), %r14\n\t"                                       \
                    "movq -40(%rcx), %r15\n\t"                                       \
                    ".cfi_same_value rbx\n\t"                                        \
                    ".cfi_same_value r12\n\t"                                        \
                    ".cfi_same_value r13\n\t"                                        \
                    ".cfi_same_value r14\n\t"                                        \
                    ".cfi_same_value r15\n\t"                                        \
                    "movq %rcx, %rsp\n\t"                                            \
                    restore                                                          \
                    "movq %rdi, %rax\n\t"                                            \
                    /* notrack: there is no landing pad behind a call. */            \
                    "notrack jmpq *%rdx")
// clang-format on

// Loading control words that are the same already costs less than finding that out.
#define PIRN_ACO_SAVE_WORDS \
  "fnstcw 24(%rdi)\n\t"     \
  "stmxcsr 28(%rdi)\n\t"
#define PIRN_ACO_RESTORE_WORDS \
  "fldcw 24(%rsi)\n\t"         \
  "ldmxcsr 28(%rsi)\n\t"
#define PIRN_ACO_SAVE_WORDS_TEXT \
  "fnstcw (%rdi)\n\t"            \
  "stmxcsr 4(%rdi)\n\t"          \
  "retq"
#define PIRN_ACO_RETURN_ADDRESS "rip"
#define PIRN_ACO_PROTECTOR_TEXT \
  "andq $-16, %rsp\n\t"         \
  "callq pirn_aco_returned\n\t" \
  "ud2"
