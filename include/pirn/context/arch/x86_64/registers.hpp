// x86-64: the registers that the switches name, and how a switch enters a function on a fresh stack.
#pragma once

#include "pirn/context/arch/shared/assembly.hpp"

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

// The registers in which transfer_into puts the arguments of its entry function, in the two conventions.
#if defined(PIRN_HAS_NONE)
#define PIRN_INTO_PC "%%r12"
#define PIRN_INTO_SP "%%r13"
#define PIRN_INTO_FP "%%r14"
#define PIRN_INTO_SEVENTH "%%rbp"
#define PIRN_INTO_VALUES "+r"(value0), "+r"(value1), "+r"(value2), "+r"(value3), "+r"(fresh), "+r"(root)
#define PIRN_INTO_CLOBBERS "rcx", "r8", "r9",
#else
#define PIRN_INTO_PC "%%rdi"
#define PIRN_INTO_SP "%%rsi"
#define PIRN_INTO_FP "%%rdx"
#define PIRN_INTO_SEVENTH "%%r15"
#define PIRN_INTO_VALUES                                                                               \
  "+r"(value0), "=&r"(value1), "=&r"(value2), "=&r"(value3), "+r"(fresh), "+r"(root), "+r"(argument3), \
      "+r"(argument4), "+r"(argument5)
#define PIRN_INTO_CLOBBERS
#endif
// How a switch into a fresh stack jumps to the function there. In the large code model that may be too far away for a
// jump, and its address is no constant of position-independent code: then the register `by` holds it.
#if defined(__code_model_large__)
#define PIRN_INTO_JUMP(by) "jmpq *%%" by "\n\t"
#define PIRN_INTO_ADDRESS(function) const auto landing_address = function;
#define PIRN_INTO_REGISTER(by) register auto landing asm(by) = landing_address;
#define PIRN_INTO_OUTPUT , "+r"(landing)
#define PIRN_INTO_INPUT(function)
#define PIRN_INTO_CLOBBER(by)
#else
#define PIRN_INTO_JUMP(by) "jmp %P[landing]\n\t"
#define PIRN_INTO_ADDRESS(function)
#define PIRN_INTO_REGISTER(by)
#define PIRN_INTO_OUTPUT
#define PIRN_INTO_INPUT(function) [landing] "i"(function)
#define PIRN_INTO_CLOBBER(by) by,
#endif
#if defined(__CET__) && (__CET__ & 1)
#define PIRN_LANDING "endbr64\n\t"
#else
#define PIRN_LANDING ""
#endif
// Where a suspended side is resumed: at the beginning of a block that the processor fetches at once. The nop is the
// byte whose unwind table a return address is looked up by.
#define PIRN_RESUME_ENTRY "nop\n\t.p2align 4\n" PIRN_RESUME_LABEL PIRN_LANDING
