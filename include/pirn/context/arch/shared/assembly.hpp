// The macros that put assembly, and the unwind tables of its instructions, into a header.
#pragma once

#include "pirn/detail/abi.hpp"

// Unwind tables inside an asm need the compiler to have opened a table for the function.
#if defined(__GCC_HAVE_DWARF2_CFI_ASM)
#define PIRN_CFI(text) text "\n\t"
#else
#define PIRN_CFI(text) ""
#endif
// Tables for values in another context, as bytes that no assembler interprets. The function around the asm is the
// compiler's, and a .cfi_def_cfa would change the assembler's state: clang's takes the offset for that of the function,
// and not even .cfi_restore_state restores it. Where a later call has arguments on the stack (or `push` is shorter than
// `mov`) it counts from there. Directives that it does not keep (.cfi_register, .cfi_offset, .cfi_same_value,
// .cfi_undefined) may be written as usual; ./dev check verifies that. R and S are DWARF's numbers of registers, R
// up to 31 and S up to 127, and O is from 0 to 63, so that each is one byte (of LEB128). The bytes are:
//   PIRN_CFA_IS      0c    DW_CFA_def_cfa: the CFA is a register plus an offset
//                    R     the register
//                    O     the offset
//   PIRN_CFA_IN      0f    DW_CFA_def_cfa_expression: an expression computes the CFA
//                    03    the expression has 3 bytes
//                    70+R  DW_OP_breg<R>: pushes register R plus an offset
//                    O     the offset
//                    06    DW_OP_deref: replaces that address by the word that lies there
//   PIRN_SAVED_IN    10    DW_CFA_expression: an expression computes the address where a register was saved
//                    S     the saved register
//                    02    the expression has 2 bytes
//                    70+R  DW_OP_breg<R>: pushes register R plus an offset
//                    O     the offset
// Each use lists its bytes, with the names of the registers.
#define PIRN_CFA_IS(base, offset) ".cfi_escape 0x0c, " base ", " offset
#define PIRN_CFA_IN(base, offset) ".cfi_escape 0x0f, 0x03, 0x70+" base ", " offset ", 0x06"
#define PIRN_SAVED_IN(saved, base, offset) ".cfi_escape 0x10, " saved ", 0x02, 0x70+" base ", " offset
#if defined(__clang__) && __clang_major__ < 19
#define PIRN_SWITCH_INLINE inline PIRN_NOINLINE
#define PIRN_SWITCH_INLINED false
#else
#define PIRN_SWITCH_INLINE PIRN_ALWAYS_INLINE
#define PIRN_SWITCH_INLINED true
#endif
// The attributes of a function that consists of its asm alone, on x86: gcc puts a stack protector's prologue into naked
// functions too, and in the large code model, where it does not optimize, code that finds the global offset table.
#if defined(__code_model_large__) && defined(__PIC__) && !defined(__clang__)
#define PIRN_NAKED_OPTIMIZED , optimize("O1")
#else
#define PIRN_NAKED_OPTIMIZED
#endif
#define PIRN_NAKED                                                                                            \
  __attribute__((naked, noinline, no_stack_protector, no_instrument_function, no_profile_instrument_function, \
                 patchable_function_entry(0) PIRN_NAKED_OPTIMIZED))
// As PIRN_NAKED, where gcc has no naked functions. PIRN_ASM_NAME follows the declaration, PIRN_ASM_FUNCTION defines it;
// NAME is a string. The copies of all objects become one, also where link-time optimization puts them into one
// assembly.
#define PIRN_ASM_NAME(name) asm("pirn_" PIRN_ABI_NAME "_" name) __attribute__((visibility("hidden")))
#define PIRN_ASM_FUNCTION(name, text)                                                                     \
  asm(".ifndef pirn_" PIRN_ABI_NAME "_" name                                                              \
      "\n\t"                                                                                              \
      ".pushsection .text.pirn_" PIRN_ABI_NAME "_" name ",\"axG\",@progbits,pirn_" PIRN_ABI_NAME "_" name \
      ",comdat\n\t"                                                                                       \
      ".balign 4\n\t.weak pirn_" PIRN_ABI_NAME "_" name "\n\t.hidden pirn_" PIRN_ABI_NAME "_" name        \
      "\n\t"                                                                                              \
      ".type pirn_" PIRN_ABI_NAME "_" name                                                                \
      ",@function\n"                                                                                      \
      "pirn_" PIRN_ABI_NAME "_" name ":\n\t.cfi_startproc\n\t" text                                       \
      "\n\t.cfi_endproc\n\t"                                                                              \
      ".size pirn_" PIRN_ABI_NAME "_" name ",.-pirn_" PIRN_ABI_NAME "_" name "\n\t.popsection\n\t.endif")
