// i386, System V. The contract and the picture are in aco_switch.hpp.
#pragma once

#include <cstddef>

#include "aco.h"
#include "pirn/context/arch/shared/assembly.hpp"

namespace pirn_aco {

inline constexpr std::size_t kept_words = 3;
static_assert(offsetof(aco_t, x87_control) == 12 && offsetof(aco_t, mxcsr) == 16, "the assembly uses these offsets");

}  // namespace pirn_aco

// clang-format off
// At the beginning eax is `state`, edx is `to`, and esp points to the return address. Then ecx holds the sp behind it,
// through which the frame is found: the registers are stored below esp at no instruction. From its second load on, ecx
// holds the sp of `to`. At the jump esp, ebp, ebx, esi and edi are those of `to`, and eax is still `state`; all others
// are undefined. The bytes of the tables:
//   0c 01 00         DW_CFA_def_cfa, register 1, offset 0                               CFA = ecx
//   10 08 02 70 00   DW_CFA_expression, register 8, 2 bytes: DW_OP_breg0 (eax) + 0      return address at eax + 0
//   10 08 02 72 00   DW_CFA_expression, register 8, 2 bytes: DW_OP_breg2 (edx) + 0      return address at edx + 0
//   10 05 02 72 08   DW_CFA_expression, register 5, 2 bytes: DW_OP_breg2 (edx) + 8      ebp at edx + 8
#define PIRN_ACO_SWITCH(name, save, restore)                                         \
  PIRN_ACO_FUNCTION(name,                                                            \
                    "movl (%esp), %ecx\n\t"                                          \
                    "movl %ecx, 0(%eax)\n\t"                                         \
                    "leal 4(%esp), %ecx\n\t"                                         \
                    "movl %ecx, 4(%eax)\n\t"                                         \
                    "movl %ebp, 8(%eax)\n\t"                                         \
                    save                                                             \
                    PIRN_CFA_IS("1", "0") "\n\t"                                     \
                    PIRN_SAVED_IN("8", "0", "0") "\n\t"                              \
                    /* The topmost slot was that of the return address. */           \
                    "leal -12(%ecx), %esp\n\t"                                       \
                    "movl %ebx, -4(%ecx)\n\t"                                        \
                    "movl %esi, -8(%ecx)\n\t"                                        \
                    "movl %edi, -12(%ecx)\n\t"                                       \
                    ".cfi_offset ebx, -4\n\t"                                        \
                    ".cfi_offset esi, -8\n\t"                                        \
                    ".cfi_offset edi, -12\n\t"                                       \
                    /* From the next instruction on the frame is that of `to`. */    \
                    "movl 4(%edx), %ecx\n\t"                                         \
                    PIRN_SAVED_IN("8", "2", "0") "\n\t"                              \
                    PIRN_SAVED_IN("5", "2", "8") "\n\t"                              \
                    "leal -12(%ecx), %esp\n\t"                                       \
                    "movl 8(%edx), %ebp\n\t"                                         \
                    ".cfi_same_value ebp\n\t"                                        \
                    restore                                                          \
                    "movl -4(%ecx), %ebx\n\t"                                        \
                    "movl -8(%ecx), %esi\n\t"                                        \
                    "movl -12(%ecx), %edi\n\t"                                       \
                    ".cfi_same_value ebx\n\t"                                        \
                    ".cfi_same_value esi\n\t"                                        \
                    ".cfi_same_value edi\n\t"                                        \
                    "movl %ecx, %esp\n\t"                                            \
                    /* notrack: there is no landing pad behind a call. */            \
                    "notrack jmpl *(%edx)")
// clang-format on

// Loading control words that are the same already costs less than finding that out.
#define PIRN_ACO_SAVE_WORDS \
  "fnstcw 12(%eax)\n\t"     \
  "stmxcsr 16(%eax)\n\t"
#define PIRN_ACO_RESTORE_WORDS \
  "fldcw 12(%edx)\n\t"         \
  "ldmxcsr 16(%edx)\n\t"
#define PIRN_ACO_SAVE_WORDS_TEXT \
  "movl 4(%esp), %eax\n\t"       \
  "fnstcw (%eax)\n\t"            \
  "stmxcsr 4(%eax)\n\t"          \
  "retl"
#define PIRN_ACO_RETURN_ADDRESS "eip"
#define PIRN_ACO_PROTECTOR_TEXT \
  "andl $-16, %esp\n\t"         \
  "call pirn_aco_returned\n\t"  \
  "ud2"
