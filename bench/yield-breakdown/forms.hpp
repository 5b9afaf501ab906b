// The yields of yield-breakdown: from one over a switch that is a function and saves everything to this_fiber::yield.
#pragma once

#include "pirn/fiber/runtime.hpp"

#if !defined(__x86_64__)
#error "yield-breakdown: its switches that are functions are written for x86-64"
#endif

namespace bench::yields {

namespace arch = pirn::arch;

/// What a resumed fiber finds in registers: its worker, and an action on behalf of the fiber that was switched out.
struct message {
  arch::word worker;
  arch::word pending;
};

// Switches that are functions, as those of other libraries: they save what the calling convention has functions
// preserve, on the stack, and the caller saves the rest. A fiber that is suspended by one is a context like all others,
// so that the scheduler and a join resume it. rdi, rsi: from, to; rdx, rcx: the message, which is in rdi and rsi where
// contexts are resumed.
#define BENCH_SAVE "pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
#define BENCH_RESTORE "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\t"
#define BENCH_EXCHANGE      \
  "leaq 1f(%rip), %rax\n\t" \
  "movq %rax, (%rdi)\n\t"   \
  "movq %rsp, 8(%rdi)\n\t"  \
  "movq %rbp, 16(%rdi)\n\t" \
  "movq %rsi, %rax\n\t"     \
  "movq %rdx, %rdi\n\t"     \
  "movq %rcx, %rsi\n\t"     \
  "movq 8(%rax), %rsp\n\t"  \
  "movq 16(%rax), %rbp\n\t" \
  "jmpq *(%rax)\n\t"        \
  ".p2align 4\n"            \
  "1:\n\t"                  \
  "movq %rdi, %rax\n\t"     \
  "movq %rsi, %rdx\n\t"

/// Saves six registers and the control words of both floating-point units.
[[gnu::naked, gnu::noinline]] inline message switch_saving_all(arch::context* /*from*/, arch::context* /*to*/,
                                                               arch::word /*worker*/, arch::word /*pending*/) {
  asm(BENCH_SAVE "subq $8, %rsp\n\tstmxcsr (%rsp)\n\tfnstcw 4(%rsp)\n\t"     //
      BENCH_EXCHANGE "ldmxcsr (%rsp)\n\tfldcw 4(%rsp)\n\taddq $8, %rsp\n\t"  //
      BENCH_RESTORE "retq");
}

/// Saves six registers.
[[gnu::naked, gnu::noinline]] inline message switch_saving_six(arch::context* /*from*/, arch::context* /*to*/,
                                                               arch::word /*worker*/, arch::word /*pending*/) {
  asm(BENCH_SAVE BENCH_EXCHANGE BENCH_RESTORE "retq");
}

/// The statements of this_fiber::yield, over a switch that is a function.
template <message (*change)(arch::context*, arch::context*, arch::word, arch::word)>
struct out_of_line {
  [[gnu::noinline]] static void yield() {
    namespace detail = pirn::detail;
    detail::worker* const w = detail::current_worker();
    if (w == nullptr) [[unlikely]] {
      return;
    }
    if (w->consume_budget() || (w->queue.woken() | w->yield_slow_mask->bits()) != 0) [[unlikely]] {
      detail::yield_slow(w);
      return;
    }
    detail::run_node* const self = w->queue.running();
    detail::run_node* const next = w->queue.rotate();
    const message by = change(&self->state, &next->state, reinterpret_cast<arch::word>(w), 0);
    detail::finish_switch(by.worker, by.pending);
  }
};

/// The library's switch, which is inlined into a yield that is a function and so preserves what functions preserve.
struct inlined_switch {
  [[gnu::noinline]] static void yield() { pirn::this_fiber::yield(); }
};

/// The same yield by a convention that preserves nothing.
struct in_convention {
  [[gnu::noinline]] PIRN_NONE static void yield() { pirn::this_fiber::yield(); }
};

/// The library's own yield.
struct inlined_yield {
  PIRN_ALWAYS_INLINE static void yield() { pirn::this_fiber::yield(); }
};

}  // namespace bench::yields
