// `enter_last` of AArch64, RISC-V 64 and PowerPC64, in terms of macros that their files define. Included by those files
// only.
//
//   PIRN_ENTRY        the register that holds the function
//   PIRN_ROOT         the register that holds an address in the root frame
//   PIRN_ENTER_TEXT   enters that function on the stack that ends at PIRN_TO_SP, with PIRN_ROOT as return address
// and those of words_in_registers.hpp.
#pragma once

#include "pirn/context/arch/shared/words_in_registers.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// As `switch_last(prepare(top, entry), first, second)`, on a stack that was prepared at `top` before and whose context
/// has ended. The caller may run on that stack: only the function writes to it.
[[noreturn]] PIRN_ALWAYS_INLINE void enter_last(void* top, switch_entry entry, word first, word second) noexcept {
  void* const fresh_sp = detail::initial_sp(top);
  void* const root_address = detail::entry_plus_8(&root_frame);
  register word message0 asm(PIRN_FIRST) = first;
  register word message1 asm(PIRN_SECOND) = second;
  register void* fresh asm(PIRN_TO_SP) = fresh_sp;
  register void* root asm(PIRN_ROOT) = root_address;
  register switch_entry function asm(PIRN_ENTRY) = entry;
  // At the jump PIRN_FIRST and PIRN_SECOND hold the words, and sp is that of the root frame, which lies above the frame
  // of the caller. The caller's registers are never read again.
  asm volatile(PIRN_ENTER_TEXT : : "r"(message0), "r"(message1), "r"(fresh), "r"(root), "r"(function) : "memory");
  __builtin_unreachable();
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
