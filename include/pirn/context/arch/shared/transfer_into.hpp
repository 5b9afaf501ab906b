// `transfer_into` of AArch64, RISC-V 64 and PowerPC64, in terms of macros that their files define. Included by those
// files only.
//
//   PIRN_INTO_BY_PREPARE   defined where a direct jump is impossible
//   PIRN_INTO_TEXT         enters [landing] on the stack that ends at PIRN_TO_SP, with PIRN_TO_PC as return address
//   PIRN_SYMBOL            the constraint of [landing]
// and those of words_in_registers.hpp.
#pragma once

#include "pirn/context/arch/shared/words_in_registers.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// As `to = prepare(top, entry); transfer(to, values);`, by a direct jump to the entry function where
/// PIRN_INTO_BY_PREPARE is not defined. Ignores the earlier value of `to`.
template <transfer_entry entry>
PIRN_SWITCH_INLINE void transfer_into(void* top, peer& to, word (&values)[value_words]) noexcept {
#if defined(PIRN_INTO_BY_PREPARE)
  to = prepare(top, entry);
  transfer(to, values);
#else
  const detail::fp_words fp_control;
  void* const fresh_sp = detail::write_root_frame(top);
  void* const root = detail::entry_plus_8(&root_frame);
  PIRN_READ_VALUES(values);
  register void* pc asm(PIRN_PC);
  register void* sp asm(PIRN_SP);
  register void* fp asm(PIRN_FP);
  PIRN_BIND_VALUES(PIRN_VALUE0, PIRN_VALUE1, PIRN_VALUE2, PIRN_VALUE3);
  register void* returns_to asm(PIRN_TO_PC) = root;
  register void* fresh asm(PIRN_TO_SP) = fresh_sp;
  // At the jump PIRN_PC, PIRN_SP and PIRN_FP hold the caller and PIRN_VALUE0 to PIRN_VALUE3 its values, which are the
  // entry function's arguments. At the resume label these registers hold the new peer and its values, as after a
  // `transfer`. sp, fp and the registers that the exchange saves are this side's again; all others are undefined.
  asm volatile(PIRN_LEAVE_TEXT("") PIRN_INTO_TEXT PIRN_RESUME_ENTRY
               : "=&r"(pc), "=&r"(sp), "=&r"(fp), "+r"(value0), "+r"(value1), "+r"(value2), "+r"(value3),
                 "+r"(returns_to), "+r"(fresh)
               : [landing] PIRN_SYMBOL(&detail::land<entry>)
               : PIRN_TO_FP, PIRN_TRANSFER_CLOBBERS);
  PIRN_WRITE_PEER_AND_VALUES(to, values);
  fp_control.restore();
#endif
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
