// x86-64: the registers that the switches name, and how a switch enters a function on a fresh stack.
#pragma once

#include "pirn/context/arch/shared/assembly.hpp"
#include "pirn/context/arch/text/x86_64.h"  // IWYU pragma: export

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
