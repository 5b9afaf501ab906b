// x86-64, System V. The contract and the picture are in aco_switch.hpp.
#pragma once

#include "compat/aco_switch.hpp"

namespace pirn_aco {

inline constexpr std::size_t kept_words = 5;

static_assert(offsetof(aco_t, reg[ACO_REG_IDX_RETADDR]) == 0 && offsetof(aco_t, reg[ACO_REG_IDX_SP]) == 8 &&
                  offsetof(aco_t, reg[ACO_REG_IDX_BP]) == 16 && offsetof(aco_t, reg[ACO_REG_IDX_FPU]) == 24 &&
                  offsetof(aco_t, x87_control) == 24 && offsetof(aco_t, mxcsr) == 28,
              "the assembly below uses these offsets");

}  // namespace pirn_aco

// rdi is `state`, rsi is `to`. The frame is found through rcx: the registers are stored below rsp at no instruction.
// The bytes of its tables, explained in arch_types.hpp: 0c 02 00 is CFA = rcx + 0; 10 06 02 74 10 is rbp (6) saved at
// rsi (74: 70 + 4) + 16.
#define PIRN_ACO_SWITCH(name, save, restore)                                                            \
  PIRN_ACO_FUNCTION(name,                                                                               \
                    "movq (%rsp), %rax\n\t"                                                             \
                    "leaq 8(%rsp), %rcx\n\t"                                                            \
                    "movq %rax, 0(%rdi)\n\t"                                                            \
                    "movq %rcx, 8(%rdi)\n\t"                                                            \
                    "movq %rbp, 16(%rdi)\n\t" save                                                      \
                    ".cfi_escape 0x0c, 0x02, 0x00\n\t"                                                  \
                    ".cfi_register rip, rax\n\t"                                                        \
                    "leaq -40(%rcx), %rsp\n\t" /* The topmost slot was that of the return address. */   \
                    "movq %rbx, -8(%rcx)\n\t"                                                           \
                    "movq %r12, -16(%rcx)\n\t"                                                          \
                    "movq %r13, -24(%rcx)\n\t"                                                          \
                    "movq %r14, -32(%rcx)\n\t"                                                          \
                    "movq %r15, -40(%rcx)\n\t"                                                          \
                    ".cfi_offset rbx, -8\n\t"                                                           \
                    ".cfi_offset r12, -16\n\t"                                                          \
                    ".cfi_offset r13, -24\n\t"                                                          \
                    ".cfi_offset r14, -32\n\t"                                                          \
                    ".cfi_offset r15, -40\n\t"                                                          \
                    "movq 0(%rsi), %rdx\n\t"                                                            \
                    "movq 8(%rsi), %rcx\n\t" /* From here the frame is that of `to`. */                 \
                    ".cfi_register rip, rdx\n\t"                                                        \
                    ".cfi_escape 0x10, 0x06, 0x02, 0x74, 0x10\n\t"                                      \
                    "leaq -40(%rcx), %rsp\n\t"                                                          \
                    "movq 16(%rsi), %rbp\n\t"                                                           \
                    ".cfi_same_value rbp\n\t"                                                           \
                    "movq -8(%rcx), %rbx\n\t"                                                           \
                    "movq -16(%rcx), %r12\n\t"                                                          \
                    "movq -24(%rcx), %r13\n\t"                                                          \
                    "movq -32(%rcx), %r14\n\t"                                                          \
                    "movq -40(%rcx), %r15\n\t"                                                          \
                    ".cfi_same_value rbx\n\t"                                                           \
                    ".cfi_same_value r12\n\t"                                                           \
                    ".cfi_same_value r13\n\t"                                                           \
                    ".cfi_same_value r14\n\t"                                                           \
                    ".cfi_same_value r15\n\t"                                                           \
                    "movq %rcx, %rsp\n\t" restore /* notrack: there is no landing pad behind a call. */ \
                    "notrack jmpq *%rdx")

// Loading control words that are the same already costs less than finding that out.
#define PIRN_ACO_SAVE_WORDS \
  "fnstcw 24(%rdi)\n\t"     \
  "stmxcsr 28(%rdi)\n\t"
#define PIRN_ACO_RESTORE_WORDS \
  "fldcw 24(%rsi)\n\t"         \
  "ldmxcsr 28(%rsi)\n\t"

PIRN_ACO_SWITCH("pirn_aco_enter", "", "");
PIRN_ACO_SWITCH("pirn_aco_leave", "", "");
PIRN_ACO_SWITCH("pirn_aco_enter_own", PIRN_ACO_SAVE_WORDS, PIRN_ACO_RESTORE_WORDS);
PIRN_ACO_SWITCH("pirn_aco_leave_own", PIRN_ACO_SAVE_WORDS, PIRN_ACO_RESTORE_WORDS);

PIRN_ACO_FUNCTION("pirn_aco_save_fpucw_mxcsr",
                  "fnstcw (%rdi)\n\t"
                  "stmxcsr 4(%rdi)\n\t"
                  "retq");

// A return address is looked up as pc - 1, so a byte stands before it; there is no caller.
PIRN_ACO_FUNCTION("pirn_aco_protector",
                  ".cfi_undefined rip\n\t"
                  "nop\n\t"
                  ".globl pirn_aco_funcp_protector_asm\n\t"
                  ".type pirn_aco_funcp_protector_asm,%function\n"
                  "pirn_aco_funcp_protector_asm:\n\t"
                  "andq $-16, %rsp\n\t"
                  "callq pirn_aco_returned\n\t"
                  "ud2");
