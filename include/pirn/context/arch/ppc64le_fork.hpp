// PowerPC64, little endian: the registers and the text of the switches that only fibers need; shared/fork.hpp explains
// the names. Included by arch_fiber.hpp.
#pragma once

#include "pirn/context/arch/ppc64le.hpp"

// Not r7, in which `switch_to` has the address of the resume label: r7 would be the fifth argument of a function.
#define PIRN_THIRD "r8"
#define PIRN_WORD_CLOBBERS "r7", "r9", "r10", "r11", "r12", PIRN_CLOBBER_REST
// clang-format off
// r11 holds the address of the caller's context. r9 holds the resume label.
#define PIRN_FORK_TEXT                                       \
  PIRN_LABEL_ADDRESS("9")                                    \
  "mr 5, 1\n\t"                                              \
  "std 9, " PIRN_CONTEXT_PC "(11)\n\t"                       \
  "std 5, " PIRN_CONTEXT_SP "(11)\n\t"                       \
  "std 31, " PIRN_CONTEXT_FP "(11)\n\t"
// clang-format on
#define PIRN_FORK_CLOBBERS "r5", "r6", "r7", "r8", "r9", PIRN_CLOBBER_REST
#define PIRN_FORK_ROOT_SIZE 32

#include "pirn/context/arch/shared/fork.hpp"  // IWYU pragma: export
