// The two switches under the fibers of `client`, with the same three names: `saved`, `fresh` and `switch_to`.
// BENCH_CLASSIC chooses the classic one, a function that saves all registers that a call preserves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch.hpp"

#if defined(BENCH_CLASSIC)
// A suspension in a classic library is a function that calls another function. The two keep the registers that a call
// keeps, so the callers need no special convention.
#define BENCH_SUSPENSION [[gnu::noinline]]
#define BENCH_SWITCHES
#else
// pirn's switch is inlined in the function that suspends. The library's other functions that switch declare by their
// convention that no register survives.
#define BENCH_SUSPENSION [[gnu::always_inline]]
#define BENCH_SWITCHES PIRN_NONE
#endif

namespace bench {

#if defined(BENCH_CLASSIC)

// The end is the only difference between two classic switches. With `ret` the processor predicts the returns above it
// well if fibers that follow each other do the same. With `pop` and `jmp` it predicts the target separately, which is
// better than wrongly predicted returns if fibers do different things.
#if defined(BENCH_CLASSIC_JUMPS)
#define BENCH_CLASSIC_END "popq %rcx\n\tjmpq *%rcx"
#else
#define BENCH_CLASSIC_END "retq"
#endif

/// A suspended context: everything but its sp lies on its stack.
struct saved {
  void* sp = nullptr;
};

/// Suspends the caller into `from` and resumes `to`: in assembly, and like pirn's switch without the control words of
/// the floating-point unit.
[[gnu::naked, gnu::noinline]] inline void switch_to(saved& /*from*/, const saved& /*to*/) {
  asm volatile(
      "pushq %rbp\n\t"
      "pushq %rbx\n\t"
      "pushq %r12\n\t"
      "pushq %r13\n\t"
      "pushq %r14\n\t"
      "pushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq (%rsi), %rsp\n\t"
      "popq %r15\n\t"
      "popq %r14\n\t"
      "popq %r13\n\t"
      "popq %r12\n\t"
      "popq %rbx\n\t"
      "popq %rbp\n\t"  //
      BENCH_CLASSIC_END);
}

/// Returns a context that begins with `entry`, which must not return, on the stack that ends at `top`.
inline saved fresh(void* top, void (*entry)()) {
  constexpr std::size_t registers = 6;
  auto* slot = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15});
  *--slot = nullptr;  // in the place of its return address: it has no caller
  *--slot = reinterpret_cast<void*>(entry);
  for (std::size_t i = 0; i < registers; ++i) {
    *--slot = nullptr;
  }
  return {slot};
}

#else

using saved = pirn::arch::context;

[[gnu::always_inline]] inline void switch_to(saved& from, const saved& to) {
  pirn::arch::word nothing = 0;
  pirn::arch::word more = 0;
  pirn::arch::switch_to(from, to, nothing, more);
}

inline saved fresh(void* top, void (*entry)()) {
  return pirn::arch::prepare(top, reinterpret_cast<pirn::arch::switch_entry>(reinterpret_cast<void*>(entry)));
}

#endif

}  // namespace bench
