// The switches of the ISAs whose registers hold seven words, in terms of macros that their files define: the registers,
// the clobbers, and the text of the assembly. Included by those files only.
//
//   PIRN_FIRST, PIRN_SECOND   the messages of `switch_to`, which are an entry function's two arguments
//   PIRN_FROM, PIRN_TO        its two contexts
//   PIRN_PC, PIRN_SP, PIRN_FP, PIRN_VALUE0 to PIRN_VALUE3   the peer and the values of `transfer`: the seven arguments
//                             of an entry function in the convention of PIRN_NONE, and afterwards the received ones
//   PIRN_TO_PC, PIRN_TO_SP, PIRN_TO_FP   the context that is about to be resumed
//   PIRN_SWITCH_CLOBBERS, PIRN_TRANSFER_CLOBBERS   all other registers that the asm of each may name, and memory
//   PIRN_SWITCH_TEXT          saves the caller at PIRN_FROM and resumes the context at PIRN_TO
//   PIRN_TRANSFER_TEXT        moves the target from PIRN_PC, PIRN_SP, PIRN_FP to PIRN_TO_PC, PIRN_TO_SP, PIRN_TO_FP
//   PIRN_LEAVE_TEXT(tag)      puts the caller into PIRN_PC, PIRN_SP, PIRN_FP; executes `tag` once PIRN_SP is set
//   PIRN_TAG_TEXT             sets the tag in PIRN_SP
//   PIRN_EXCHANGE             resumes the context in PIRN_TO_PC, PIRN_TO_SP, PIRN_TO_FP
//   PIRN_RESUME_ENTRY         where the caller proceeds when it is resumed
#pragma once

#include "pirn/context/arch/shared/operands.hpp"
#include "pirn/context/arch/shared/types.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// Suspends the caller into `from` and resumes `to`. `first` and `second` travel in registers: the resumed side finds
/// them in its own two arguments (a fresh context in its entry's parameters), and on return they hold the words that
/// the caller's resumer sent. If `from` and `to` are the same object, it returns at once with its own words.
PIRN_SWITCH_INLINE void switch_to(context& from, const context& to, word& first, word& second) noexcept {
  const detail::fp_words fp;
  const word sent0 = first, sent1 = second;
  register word message0 asm(PIRN_FIRST) = sent0;
  register word message1 asm(PIRN_SECOND) = sent1;
  register context* out asm(PIRN_FROM) = &from;
  register const context* in asm(PIRN_TO) = &to;
  // At the jump PIRN_FIRST and PIRN_SECOND hold the words that go. At the resume label they hold the words of the
  // resumer. sp, fp and the registers that the switch saves are this side's again; all others are undefined.
  asm volatile(PIRN_SWITCH_TEXT PIRN_RESUME_ENTRY
               : "+r"(message0), "+r"(message1), "+r"(out), "+r"(in)
               :
               : PIRN_SWITCH_CLOBBERS);
  PIRN_WRITE_WORDS(first, second);
  fp.restore();
}

namespace detail {
/// `transfer`, where the resumed side finds `tag` in the sp of its peer.
template <word tag>
PIRN_SWITCH_INLINE void transfer_tagging(peer& to, word (&values)[value_words]) noexcept {
  const fp_words fp_control;
  PIRN_READ_PEER(target, to);
  PIRN_READ_VALUES(values);
  PIRN_BIND_PEER(target, PIRN_PC, PIRN_SP, PIRN_FP);
  PIRN_BIND_VALUES(PIRN_VALUE0, PIRN_VALUE1, PIRN_VALUE2, PIRN_VALUE3);
  // At the jump PIRN_TO_PC, PIRN_TO_SP and PIRN_TO_FP hold the target, PIRN_PC, PIRN_SP (with the tag) and PIRN_FP the
  // caller, PIRN_VALUE0 to PIRN_VALUE3 the values that go. At the resume label PIRN_PC, PIRN_SP (with its tag) and
  // PIRN_FP hold the new peer, PIRN_VALUE0 to PIRN_VALUE3 its values. sp, fp and the registers that the exchange saves
  // are this side's again; all others are undefined.
  asm volatile(PIRN_TRANSFER_TEXT PIRN_LEAVE_TEXT(".if %c[tag]\n\t" PIRN_TAG_TEXT ".endif\n\t")
                   PIRN_EXCHANGE PIRN_RESUME_ENTRY
               : "+r"(pc), "+r"(sp), "+r"(fp), "+r"(value0), "+r"(value1), "+r"(value2), "+r"(value3)
               : [tag] "i"(tag)
               : PIRN_TO_PC, PIRN_TO_SP, PIRN_TO_FP, PIRN_TRANSFER_CLOBBERS);
  PIRN_WRITE_PEER_AND_VALUES(to, values);
  fp_control.restore();
}
}  // namespace detail

/// The last switch of a context: as `transfer`, but the caller never runs again, and its stack is free as soon as `to`
/// runs. The resumed side finds `instead` as its peer, by which an ending context can name the context to be resumed
/// next.
[[noreturn]] PIRN_ALWAYS_INLINE void transfer_last(const peer& to, const word (&values)[value_words],
                                                   const peer& instead = ended_peer()) noexcept {
  PIRN_READ_PEER(target, to);
  PIRN_READ_PEER(instead, instead);
  PIRN_READ_VALUES(values);
  PIRN_BIND_PEER(instead, PIRN_PC, PIRN_SP, PIRN_FP);
  PIRN_BIND_VALUES(PIRN_VALUE0, PIRN_VALUE1, PIRN_VALUE2, PIRN_VALUE3);
  register void* to_pc asm(PIRN_TO_PC) = target_pc;
  register void* to_sp asm(PIRN_TO_SP) = target_sp;
  register void* to_fp asm(PIRN_TO_FP) = target_fp;
  // There is no resume label: the caller's registers are never read again.
  asm volatile(PIRN_EXCHANGE
               :
               : "r"(pc), "r"(sp), "r"(fp), "r"(value0), "r"(value1), "r"(value2), "r"(value3), "r"(to_pc), "r"(to_sp),
                 "r"(to_fp)
               : "memory");
  __builtin_unreachable();
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/generic.hpp"  // IWYU pragma: export
