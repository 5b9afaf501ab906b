// The macros that put assembly, and the unwind tables of its instructions, into a header.
#pragma once

#include "pirn/context/arch/text/assembly.h"  // IWYU pragma: export
#include "pirn/detail/abi.hpp"

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
#define PIRN_ASM_FUNCTION(name, text) asm(PIRN_DEFINE_FUNCTION("pirn_" PIRN_ABI_NAME "_" name, text))
