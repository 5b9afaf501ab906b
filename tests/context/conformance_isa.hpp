// Everything that the conformance program must know about the instruction set. Each file has the same names in the same
// order:
//
//   spoil_all_registers, changed_registers, vector, vector_groups, ANY_VECTOR   registers by value
//   direction_flag, x87_empty                                                   flags
//   control_words, usual_words, words_up, words_down                            control words
//   entry_sp_offset, stack_pointer, note_sp_of_switch_to, note_sp_of_transfer   the stack
//   has_landing_pads, is_landing_pad, is_start_frame                            code
//   backtrace_reaches_start, tables_hold_everywhere, kernel_frames_are_known    signals
//   can_single_step, interrupted_pc, keep_stepping, begin_stepping
//   check_particulars                                                           checks of this instruction set alone
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "conformance.hpp"

namespace conformance {

// An entry function's first instruction stores sp at `sp` and continues at `proceed`. The probe's address is the last
// message word.
struct entry_probe {
  word sp;
  void* proceed;
  arch::context here, there;
};

}  // namespace conformance

#if defined(__x86_64__)
#include "conformance_x86_64.hpp"
#elif defined(__i386__)
#include "conformance_i386.hpp"
#elif defined(__aarch64__)
#include "conformance_aarch64.hpp"
#elif defined(__riscv)
#include "conformance_riscv64.hpp"
#elif defined(__powerpc64__)
#include "conformance_ppc64le.hpp"
#endif
