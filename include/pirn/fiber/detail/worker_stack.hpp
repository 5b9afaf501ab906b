// Runs a function on the worker's stack instead of the fiber's.
//
// While a fiber runs, its worker's scheduler is suspended, and the stack below its sp is free. A function that does not
// suspend may run there as well as on the fiber's stack. For a fiber whose stack is only as large as necessary,
// functions of unknown depth run there.
#pragma once

#include <memory>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

#if defined(__x86_64__)
/// Whether a function can run there. Elsewhere no fiber has a small stack.
inline constexpr bool has_worker_stack = true;

/// Calls `run(argument)` with the stack below `top`, or on the present one if that is null.
PIRN_NAKED inline void call_on(void* /*top*/, void (* /*run*/)(void*), void* /*argument*/) {
  // clang-format off
  asm volatile(
      "# pirn-stack: 8\n\t"  // for the compiler plugin, which adds the return address
      "pushq %rbp\n\t"
      PIRN_CFI(".cfi_adjust_cfa_offset 8")
      PIRN_CFI(".cfi_rel_offset rbp, 0")
      "movq %rsp, %rbp\n\t"
      PIRN_CFI(".cfi_def_cfa_register rbp")
      "testq %rdi, %rdi\n\t"
      "cmovneq %rdi, %rsp\n\t"
      "movq %rdx, %rdi\n\t"
      "callq *%rsi\n\t"
      "movq %rbp, %rsp\n\t"
      PIRN_CFI(".cfi_def_cfa_register rsp")
      "popq %rbp\n\t"
      PIRN_CFI(".cfi_adjust_cfa_offset -8")
      PIRN_CFI(".cfi_restore rbp")
      "retq");
  // clang-format on
}
#else
inline constexpr bool has_worker_stack = false;

inline void call_on(void* /*top*/, void (*run)(void*), void* argument) { run(argument); }
#endif

/// Returns where the free part of the worker's stack begins, while one of its fibers runs.
PIRN_ALWAYS_INLINE void* free_worker_stack(worker* w) noexcept {
  const auto sp = reinterpret_cast<std::uintptr_t>(w->queue.scheduler()->state.sp);
  return reinterpret_cast<void*>((sp - arch::red_zone) & ~std::uintptr_t{15});
}

/// Calls `body` on the worker's stack if the running fiber's is a small one, else in place. It must not suspend.
template <class F>
PIRN_ALWAYS_INLINE void on_worker_stack(worker* w, F&& body) noexcept {
  const worker::bounded_fiber before = w->bounded;
  const bool small = before == worker::bounded_fiber::runs || before == worker::bounded_fiber::checked;
  void* const top = small ? free_worker_stack(w) : nullptr;
  if (top != nullptr) {
    w->bounded = worker::bounded_fiber::borrows;
  }
  call_on(
      top, [](void* argument) noexcept { (*static_cast<std::remove_reference_t<F>*>(argument))(); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  w->bounded = before;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
