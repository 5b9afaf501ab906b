/* The switch for C11 and C++: contexts that are switched by a few inlined instructions instead of a call of the
 * library.
 *
 *   static pirn_context here, there;
 *   static void count(uintptr_t first, uintptr_t second) {
 *     for (;;) {
 *       ++first;
 *       pirn_switch(&there, &here, &first, &second);
 *     }
 *   }
 *   pirn_stack *stack;
 *   void *top;
 *   uintptr_t number = 1, unused = 0;
 *   if (pirn_stack_create(&stack, 0) == 0 && pirn_stack_lend(stack, &top) == 0) {
 *     pirn_context_prepare(&there, top, count);
 *     pirn_switch(&here, &there, &number, &unused);  // number is 2 now
 *   }
 *
 * A context is the bare state of a suspended function: it has no owner, no end and no error. pirn_coroutine of pirn.h
 * has all three, at the price of a call. The terms are those of pirn/context/arch.hpp, whose assembly this is:
 *
 *   - Registers are saved by the compiler, and only those whose values are needed after the switch.
 *   - Control words of the floating-point unit, the signal mask and errno belong to the thread, not to the context.
 *   - C++ exceptions in flight belong to the thread: a context that switches inside a catch block or while it unwinds
 * is resumed only when each other context has left the blocks that it entered meanwhile.
 *   - A context that switches inside the body of a pirn_coroutine must be back in it before the body yields or returns.
 *   - Sanitizers are not notified. Under AddressSanitizer and ThreadSanitizer use pirn_resume and pirn_yield.
 *
 * gcc 12 and clang 14 or later, on x86-64, i386, AArch64, RISC-V 64 and PowerPC64 LE; by clang before 19 the switch is
 * a call. Linked with pirn-c (pirn::c, pirn::c_static), for the functions that are not inline.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pirn/pirn.h"

#if defined(__x86_64__) && !defined(__ILP32__)
#include "pirn/context/arch/text/x86_64.h"
#elif defined(__aarch64__) && !defined(__ILP32__) && defined(__linux__)
#include "pirn/context/arch/text/aarch64.h"
#elif defined(__i386__)
#include "pirn/context/arch/text/i386.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "pirn/context/arch/text/riscv64.h"
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__) && _CALL_ELF == 2
#include "pirn/context/arch/text/ppc64le.h"
#else
#error "pirn: no context switch for this instruction set, only for x86-64, i386, AArch64, RISC-V 64 and PowerPC64 LE"
#endif

#if defined(PIRN_KEEP_FP_WORDS)
#error "pirn: pirn/inline.h has no PIRN_KEEP_FP_WORDS: its contexts share the control words of their thread"
#endif
#if defined(__has_feature)
#if __has_feature(safe_stack)
#error "pirn: -fsanitize=safe-stack is not supported: each thread has a second stack, which no switch exchanges"
#elif __has_feature(shadow_call_stack)
#error \
    "pirn: -fsanitize=shadow-call-stack is not supported: each thread has a stack of returns, which no switch exchanges"
#endif
#endif

#if defined(__clang__) && __clang_major__ < 19
/* It keeps using the base register of a frame with an over-aligned local and alloca, though the asm clobbers it. */
#define PIRN_SWITCH_IN_C static __attribute__((noinline, unused, no_instrument_function))
#else
#define PIRN_SWITCH_IN_C static inline __attribute__((always_inline, unused, no_instrument_function))
#endif

#define PIRN_NORETURN_IN_C __attribute__((noreturn))

#ifdef __cplusplus
extern "C" {
#endif

/** A suspended function: where it continues, and its stack and frame pointers. Filled by pirn_context_prepare or by
 * pirn_switch; resuming it once consumes it. */
typedef struct pirn_context {
  void* pc; /**< where it continues */
  void* sp; /**< its stack pointer there */
  void* fp; /**< its frame pointer there */
} pirn_context;

/** A function that a context begins with: gets the two words of its first resumer, and must not return, which traps. */
typedef void (*pirn_entry)(uintptr_t first, uintptr_t second);

/** Makes `result` a context that begins with `entry` on the stack that ends at `top`. Any thread may resume it. Writes
 * at most 64 bytes below `top`; an entry function needs what its calls need, and a signal handler that strikes in it
 * more. */
PIRN_EXPORT void pirn_context_prepare(pirn_context* result, void* top, pirn_entry entry);
/** Lends a stack to a context: sets `*top` to its end. No coroutine and no other borrower gets it until
 * pirn_stack_take_back. -EINVAL: null; -EBUSY: the stack is taken. */
PIRN_EXPORT int pirn_stack_lend(pirn_stack* stack, void** top);
/** Takes back a stack that was lent. The context on it must not be resumed again; nothing in it is unwound. Null is
 * ignored. -EINVAL: it was not lent. */
PIRN_EXPORT int pirn_stack_take_back(pirn_stack* stack);

/** Suspends the caller into `from` and resumes `to`. The resumed side finds the two words where it receives words: in
 * the parameters of its entry function, or in the variables that it gave to pirn_switch. On return the words are those
 * of the caller's resumer. If `from` and `to` are the same object, it returns at once with the caller's words. */
PIRN_SWITCH_IN_C void pirn_switch(pirn_context* from, const pirn_context* to, uintptr_t* first, uintptr_t* second) {
  /* All memory is read before the first register is bound, and written after all are copied: an access may be a call
   * of an instrumented build. */
  const uintptr_t sent0 = *first, sent1 = *second;
  register uintptr_t message0 __asm__(PIRN_FIRST) = sent0;
  register uintptr_t message1 __asm__(PIRN_SECOND) = sent1;
  register pirn_context* out __asm__(PIRN_FROM) = from;
  register const pirn_context* in __asm__(PIRN_TO) = to;
  __asm__ __volatile__(PIRN_SWITCH_TEXT PIRN_RESUME_ENTRY
                       : "+r"(message0), "+r"(message1), "+r"(out), "+r"(in)
                       :
                       : PIRN_SWITCH_CLOBBERS);
  const uintptr_t received0 = message0, received1 = message1;
  *first = received0;
  *second = received1;
}

/** The last switch of a context: as pirn_switch, but the caller never runs again, and its stack is free as soon as `to`
 * runs. */
PIRN_NORETURN_IN_C PIRN_SWITCH_IN_C void pirn_switch_last(const pirn_context* to, uintptr_t first, uintptr_t second) {
  pirn_context abandoned;
  pirn_switch(&abandoned, to, &first, &second);
  __builtin_unreachable();
}

#ifdef __cplusplus
}
#endif
