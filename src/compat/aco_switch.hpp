// The switch of aco.h's coroutines:
//
//   pirn_aco_enter      suspends its caller into `state` and resumes `to`; both have the layout of aco_t::reg. Returns
//                       the `state` of the caller that resumes it
//   pirn_aco_leave      as pirn_aco_enter, on the way back: a separate function, since a jump with two alternating
//                       targets is predicted at a cost of two nanoseconds
//   pirn_aco_enter_own, pirn_aco_leave_own   as these two, but each coroutine keeps separate floating-point control
//                       words, in its state
//
// and the two functions of aco.h that cannot be written in C++: aco_save_fpucw_mxcsr, aco_funcp_protector_asm. They are
// made here of what the file of each ISA defines, in this order:
//
//   kept_words                registers that a call preserves, except the stack and frame pointer: a switch stores
//                             them on the stack
//   PIRN_ACO_SWITCH(name, save, restore)   the function `name`, with these instructions at their places
//   PIRN_ACO_SAVE_WORDS, PIRN_ACO_RESTORE_WORDS   the instructions that save and load the control words
//   PIRN_ACO_SAVE_WORDS_TEXT  the body of aco_save_fpucw_mxcsr
//   PIRN_ACO_RETURN_ADDRESS   the register of the return address in unwind tables
//   PIRN_ACO_PROTECTOR_TEXT   the body of aco_funcp_protector_asm
//
// A coroutine that is suspended, and is the owner of its share stack (addresses grow upwards):
//
//      +--------------------------------+ align_highptr, 16-byte aligned
//      | aco_funcp_protector_asm        |  where its function would return to
//      +--------------------------------+ align_retptr
//      | its frames                     |
//      +--------------------------------+ reg[ACO_REG_IDX_SP]: sp after its call of aco_yield returns
//      | the kept registers             |  the register that compilers use first is topmost
//      +--------------------------------+ sp while it is suspended
//
// This is a function that is called, unlike pirn's other switches. A program in C, built by any compiler, calls it, so
// no red zone is live, and everything that its compiler needs is in the registers that a call preserves. A fresh
// coroutine has zeros in them, and most bodies use few: an image leaves out the zeros at its low end.
//
// The resuming side jumps instead of returning: a return to other code than its call costs ten nanoseconds.
#pragma once

#include <cstddef>

#include "aco.h"

extern "C" {
#if defined(__i386__)
#define PIRN_ACO_CALL __attribute__((regparm(2), visibility("hidden")))
#else
#define PIRN_ACO_CALL __attribute__((visibility("hidden")))
#endif
PIRN_ACO_CALL void** pirn_aco_enter(void** state, void* const* to);
PIRN_ACO_CALL void pirn_aco_leave(void** state, void* const* to);
PIRN_ACO_CALL void** pirn_aco_enter_own(void** state, void* const* to);
PIRN_ACO_CALL void pirn_aco_leave_own(void** state, void* const* to);
}

#define PIRN_ACO_FUNCTION(name, text)                                                                 \
  asm(".pushsection .text." name ",\"ax\",@progbits\n\t.balign 16\n\t.globl " name "\n\t.type " name  \
      ",%function\n" name ":\n\t.cfi_startproc\n\t" text "\n\t.cfi_endproc\n\t.size " name ",.-" name \
      "\n\t.popsection")

#if defined(__x86_64__)
#include "compat/aco_switch_x86_64.hpp"
#elif defined(__i386__)
#include "compat/aco_switch_i386.hpp"
#else
#include "compat/aco_switch_aarch64.hpp"
#endif

static_assert(offsetof(aco_t, reg[ACO_REG_IDX_RETADDR]) == 0 && offsetof(aco_t, reg[ACO_REG_IDX_SP]) == sizeof(void*) &&
                  offsetof(aco_t, reg[ACO_REG_IDX_BP]) == 2 * sizeof(void*) &&
                  offsetof(aco_t, reg[ACO_REG_IDX_FPU]) == 3 * sizeof(void*),
              "the assembly of the switches uses these offsets");

PIRN_ACO_SWITCH("pirn_aco_enter", "", "");
PIRN_ACO_SWITCH("pirn_aco_leave", "", "");
PIRN_ACO_SWITCH("pirn_aco_enter_own", PIRN_ACO_SAVE_WORDS, PIRN_ACO_RESTORE_WORDS);
PIRN_ACO_SWITCH("pirn_aco_leave_own", PIRN_ACO_SAVE_WORDS, PIRN_ACO_RESTORE_WORDS);

PIRN_ACO_FUNCTION("pirn_aco_save_fpucw_mxcsr", PIRN_ACO_SAVE_WORDS_TEXT);

// A coroutine's function returns to aco_funcp_protector_asm, and has no caller. A return address is looked up in the
// unwind tables as pc - 1, so an instruction stands before it. The registers are those of the function that returned.
PIRN_ACO_FUNCTION("pirn_aco_protector", ".cfi_undefined " PIRN_ACO_RETURN_ADDRESS
                                        "\n\tnop\n\t"
                                        ".globl pirn_aco_funcp_protector_asm\n\t"
                                        ".type pirn_aco_funcp_protector_asm,%function\n"
                                        "pirn_aco_funcp_protector_asm:\n\t" PIRN_ACO_PROTECTOR_TEXT);
