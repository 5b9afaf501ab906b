// Backtraces of suspended contexts, without resuming them.
#pragma once

#include <unwind.h>

#include "pirn/context/arch.hpp"

namespace pirn::inline PIRN_ABI::arch {

namespace detail {
/// Calls `walk(step, argument)` with an unwind table which says that the caller is `suspended`:
/// CFA = *(rbx + 8), return address at rbx + 0, rbp at rbx + 16. The unwinder's address is an argument, since a
/// name inside an asm is invisible to link-time optimization.
PIRN_NAKED inline _Unwind_Reason_Code walk_as_if_called_by(const context* /*suspended*/, _Unwind_Trace_Fn /*step*/,
                                                           void* /*argument*/,
                                                           _Unwind_Reason_Code (* /*walk*/)(_Unwind_Trace_Fn, void*)) {
  // clang-format off
  asm volatile(
      "pushq %rbx\n\t"
      PIRN_CFI(".cfi_adjust_cfa_offset 8")
      PIRN_CFI(".cfi_rel_offset rbx, 0")
      "movq %rdi, %rbx\n\t"
      "movq %rsi, %rdi\n\t"
      "movq %rdx, %rsi\n\t"
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(".cfi_escape 0x0f, 0x03, 0x73, 0x08, 0x06")
      PIRN_CFI(".cfi_escape 0x10, 0x10, 0x02, 0x73, 0x00")
      PIRN_CFI(".cfi_escape 0x10, 0x06, 0x02, 0x73, 0x10")
      PIRN_CFI(".cfi_same_value rbx")
      "callq *%rcx\n\t"
      PIRN_CFI(".cfi_restore_state")
      "popq %rbx\n\t"
      PIRN_CFI(".cfi_adjust_cfa_offset -8")
      PIRN_CFI(".cfi_restore rbx")
      "retq");
  // clang-format on
}

struct walk_filter {
  _Unwind_Trace_Fn step;
  void* argument;
  bool in_suspended = false;
};

inline _Unwind_Reason_Code skip_walker(_Unwind_Context* frame, void* raw) {
  auto* filter = static_cast<walk_filter*>(raw);
  if (!filter->in_suspended) {  // the first frame is walk_as_if_called_by
    filter->in_suspended = true;
    return _URC_NO_REASON;
  }
  return filter->step(frame, filter->argument);
}
}  // namespace detail

/// Walks the frames of a suspended context, innermost first, with the signature and the result of
/// `_Unwind_Backtrace`: `step` sees the function that switched away first and the root frame last (for a fresh
/// context that is all), then once an address of 0. The context must not be resumed meanwhile. Async-signal-safe as
/// far as the unwinder is (glibc >= 2.35 finds tables without a lock).
inline _Unwind_Reason_Code backtrace_suspended(const context* suspended, _Unwind_Trace_Fn step, void* argument) {
  detail::walk_filter filter{step, argument};
  return detail::walk_as_if_called_by(suspended, &detail::skip_walker, &filter, &_Unwind_Backtrace);
}

}  // namespace pirn::inline PIRN_ABI::arch
