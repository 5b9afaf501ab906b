// AArch64: the registers and the text of the switches that only fibers need; shared/fork.hpp explains the names.
// Included by arch_fiber.hpp.
#pragma once

#include "pirn/context/arch/aarch64.hpp"

#define PIRN_THIRD "x4"
#define PIRN_WORD_CLOBBERS \
  "x5", "x6", "x9", "x10", "x11", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", PIRN_CLOBBER_REST
// clang-format off
// x11 holds the address of the caller's context. x16 holds the resume label.
#define PIRN_FORK_TEXT                                       \
  "adr x16, " PIRN_RESUME_ADDRESS "\n\t"                     \
  "mov " PIRN_FP ", sp\n\t"                                  \
  "stp x16, " PIRN_FP ", [x11, #" PIRN_CONTEXT_PC "]\n\t"    \
  "str x29, [x11, #" PIRN_CONTEXT_FP "]\n\t"
// clang-format on
#if defined(PIRN_HAS_NONE)
#define PIRN_FORK_CLOBBERS \
  "x2", "x3", "x4", "x5", "x6", "x22", "x23", "x24", "x25", "x26", "x27", "x28", PIRN_CLOBBER_REST
#else
#define PIRN_FORK_CLOBBERS \
  "x2", "x3", "x4", "x5", "x6", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", PIRN_CLOBBER_REST
#endif
#define PIRN_FORK_ROOT_SIZE 0

#include "pirn/context/arch/shared/fork.hpp"  // IWYU pragma: export
