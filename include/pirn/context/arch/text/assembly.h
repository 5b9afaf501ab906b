/* The parts that the texts of all switches share: unwind tables inside an asm, the resume label, the offsets in a
 * context.
 *
 * The headers in this folder are macros alone, for C and C++: pirn/inline.h and the headers of C++ expand the same text
 * and name the same clobbers. */
#pragma once

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

// The resume label, where a suspended caller proceeds. It is a local label, since each inlined switch has one. Each ISA
// file defines PIRN_RESUME_ENTRY, which ends a switch: the padding that the ISA needs, the label, and its landing pad.
#define PIRN_RESUME_LABEL "1:\n\t"
// That label as an operand of an instruction above it.
#define PIRN_RESUME_ADDRESS "1f"

// The offsets in a context, for assembly.
#define PIRN_CONTEXT_PC "0"
#if __SIZEOF_POINTER__ == 8
#define PIRN_CONTEXT_SP "8"
#define PIRN_CONTEXT_FP "16"
#else
#define PIRN_CONTEXT_SP "4"
#define PIRN_CONTEXT_FP "8"
#endif

// A function in assembly. `name` and `text` are strings. The copies of all objects become one, also where link-time
// optimization puts them into one assembly.
#define PIRN_DEFINE_FUNCTION(name, text)                                                                              \
  ".ifndef " name                                                                                                     \
  "\n\t"                                                                                                              \
  ".pushsection .text." name ",\"axG\",@progbits," name                                                               \
  ",comdat\n\t"                                                                                                       \
  ".balign 4\n\t.weak " name "\n\t.hidden " name "\n\t.type " name ",@function\n" name ":\n\t.cfi_startproc\n\t" text \
  "\n\t.cfi_endproc\n\t.size " name ",.-" name "\n\t.popsection\n\t.endif"
