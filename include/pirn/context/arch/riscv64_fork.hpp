// RISC-V 64: the registers and the text of the switches that only fibers need; shared/fork.hpp explains the names.
// Included by arch_fiber.hpp.
#pragma once

#include "pirn/context/arch/riscv64.hpp"

#define PIRN_THIRD "a4"
#define PIRN_WORD_CLOBBERS "t3", "t4", "t5", "a5", "a6", PIRN_CLOBBER_REST
// clang-format off
// t5 holds the address of the caller's context. t0 holds the resume label.
#define PIRN_FORK_TEXT                                       \
  "lla t0, " PIRN_RESUME_ADDRESS "\n\t"                      \
  "mv a2, sp\n\t"                                            \
  "sd t0, " PIRN_CONTEXT_PC "(t5)\n\t"                       \
  "sd a2, " PIRN_CONTEXT_SP "(t5)\n\t"                       \
  "sd s0, " PIRN_CONTEXT_FP "(t5)\n\t"
// clang-format on
#define PIRN_FORK_CLOBBERS "a2", "a3", "a4", "a5", "a6", PIRN_CLOBBER_REST
#define PIRN_FORK_ROOT_SIZE 0

#include "pirn/context/arch/shared/fork.hpp"  // IWYU pragma: export
