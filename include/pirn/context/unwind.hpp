// Backtraces of suspended contexts, without resuming them.
#pragma once

#include <unwind.h>

#include "pirn/context/arch.hpp"

namespace pirn::inline PIRN_ABI::arch {

/// Walks the frames of a suspended context, innermost first, with the signature of `_Unwind_Backtrace`. The context
/// must have been suspended by a switch (not be fresh) and must not be resumed meanwhile. Async-signal-safe as far
/// as the unwinder is (glibc >= 2.35 finds tables without a lock).
///
/// The function runs on the caller's stack; its unwind table says that its caller is `suspended`:
/// CFA = *(rbx + 8), return address at rbx + 0, rbp at rbx + 16.
__attribute__((naked, noinline)) inline _Unwind_Reason_Code backtrace_suspended(const context* /*suspended*/,
                                                                                _Unwind_Trace_Fn /*step*/,
                                                                                void* /*argument*/) {
  asm volatile(
      "pushq %rbx\n\t"
      "movq %rdi, %rbx\n\t"
      "movq %rsi, %rdi\n\t"
      "movq %rdx, %rsi\n\t" PIRN_CFI(".cfi_remember_state") PIRN_CFI(".cfi_escape 0x0f, 0x03, 0x73, 0x08, 0x06")
          PIRN_CFI(".cfi_escape 0x10, 0x10, 0x02, 0x73, 0x00")
              PIRN_CFI(".cfi_escape 0x10, 0x06, 0x02, 0x73, 0x10") "callq _Unwind_Backtrace@PLT\n\t" PIRN_CFI(
                  ".cfi_restore_state")
                  PIRN_CFI(".cfi_adjust_cfa_offset 8") "popq %rbx\n\t" PIRN_CFI(".cfi_adjust_cfa_offset -8") "retq");
}

}  // namespace pirn::inline PIRN_ABI::arch
