// i386, System V. The contract and the picture are in aco_switch.hpp.
#pragma once

#include "compat/aco_switch.hpp"

namespace pirn_aco {

inline constexpr std::size_t kept_words = 3;

static_assert(offsetof(aco_t, reg[ACO_REG_IDX_RETADDR]) == 0 && offsetof(aco_t, reg[ACO_REG_IDX_SP]) == 4 &&
                  offsetof(aco_t, reg[ACO_REG_IDX_BP]) == 8 && offsetof(aco_t, reg[ACO_REG_IDX_FPU]) == 12 &&
                  offsetof(aco_t, x87_control) == 12 && offsetof(aco_t, mxcsr) == 16,
              "the assembly below uses these offsets");

}  // namespace pirn_aco

// eax is `state`, edx is `to`. The frame is found through ecx: the registers are stored below esp at no instruction.
// The bytes of its tables, explained in arch_types.hpp: 0c 01 00 is CFA = ecx + 0; 10 08 02 70 00 is eip (8) saved at
// eax (70: 70 + 0) + 0, with 72 for edx; 10 05 02 72 08 is ebp (5) saved at edx + 8.
#define PIRN_ACO_SWITCH(name, save, restore)                                                          \
  PIRN_ACO_FUNCTION(name,                                                                             \
                    "movl (%esp), %ecx\n\t"                                                           \
                    "movl %ecx, 0(%eax)\n\t"                                                          \
                    "leal 4(%esp), %ecx\n\t"                                                          \
                    "movl %ecx, 4(%eax)\n\t"                                                          \
                    "movl %ebp, 8(%eax)\n\t" save                                                     \
                    ".cfi_escape 0x0c, 0x01, 0x00\n\t"                                                \
                    ".cfi_escape 0x10, 0x08, 0x02, 0x70, 0x00\n\t"                                    \
                    "leal -12(%ecx), %esp\n\t" /* The topmost slot was that of the return address. */ \
                    "movl %ebx, -4(%ecx)\n\t"                                                         \
                    "movl %esi, -8(%ecx)\n\t"                                                         \
                    "movl %edi, -12(%ecx)\n\t"                                                        \
                    ".cfi_offset ebx, -4\n\t"                                                         \
                    ".cfi_offset esi, -8\n\t"                                                         \
                    ".cfi_offset edi, -12\n\t"                                                        \
                    "movl 4(%edx), %ecx\n\t" /* From here the frame is that of `to`. */               \
                    ".cfi_escape 0x10, 0x08, 0x02, 0x72, 0x00\n\t"                                    \
                    ".cfi_escape 0x10, 0x05, 0x02, 0x72, 0x08\n\t"                                    \
                    "leal -12(%ecx), %esp\n\t"                                                        \
                    "movl 8(%edx), %ebp\n\t"                                                          \
                    ".cfi_same_value ebp\n\t" restore                                                 \
                    "movl -4(%ecx), %ebx\n\t"                                                         \
                    "movl -8(%ecx), %esi\n\t"                                                         \
                    "movl -12(%ecx), %edi\n\t"                                                        \
                    ".cfi_same_value ebx\n\t"                                                         \
                    ".cfi_same_value esi\n\t"                                                         \
                    ".cfi_same_value edi\n\t"                                                         \
                    "movl %ecx, %esp\n\t" /* notrack: there is no landing pad behind a call. */       \
                    "notrack jmpl *(%edx)")

// Loading control words that are the same already costs less than finding that out.
#define PIRN_ACO_SAVE_WORDS \
  "fnstcw 12(%eax)\n\t"     \
  "stmxcsr 16(%eax)\n\t"
#define PIRN_ACO_RESTORE_WORDS \
  "fldcw 12(%edx)\n\t"         \
  "ldmxcsr 16(%edx)\n\t"

PIRN_ACO_SWITCH("pirn_aco_enter", "", "");
PIRN_ACO_SWITCH("pirn_aco_leave", "", "");
PIRN_ACO_SWITCH("pirn_aco_enter_own", PIRN_ACO_SAVE_WORDS, PIRN_ACO_RESTORE_WORDS);
PIRN_ACO_SWITCH("pirn_aco_leave_own", PIRN_ACO_SAVE_WORDS, PIRN_ACO_RESTORE_WORDS);

PIRN_ACO_FUNCTION("pirn_aco_save_fpucw_mxcsr",
                  "movl 4(%esp), %eax\n\t"
                  "fnstcw (%eax)\n\t"
                  "stmxcsr 4(%eax)\n\t"
                  "retl");

// A return address is looked up as pc - 1, so a byte stands before it; there is no caller.
PIRN_ACO_FUNCTION("pirn_aco_protector",
                  ".cfi_undefined eip\n\t"
                  "nop\n\t"
                  ".globl pirn_aco_funcp_protector_asm\n\t"
                  ".type pirn_aco_funcp_protector_asm,%function\n"
                  "pirn_aco_funcp_protector_asm:\n\t"
                  "andl $-16, %esp\n\t"
                  "call pirn_aco_returned\n\t"
                  "ud2");
