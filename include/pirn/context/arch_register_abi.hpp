// The switches of the ISAs whose calling conventions pass seven words in registers, in terms of macros that their files
// define: the registers, the clobbers, and the text of the assembly. Included by those files only.
//
//   PIRN_FIRST, PIRN_SECOND   the messages of `switch_to`, which are an entry function's two arguments
//   PIRN_FROM, PIRN_TO        its two contexts
//   PIRN_PC, PIRN_SP, PIRN_FP, PIRN_VALUE0 to PIRN_VALUE3   the peer and the values of `transfer`: the seven arguments
//                             of an entry function in the convention of PIRN_NONE, and afterwards the received ones
//   PIRN_TO_PC, PIRN_TO_SP, PIRN_TO_FP   the context that is about to be resumed
#pragma once

#include "pirn/context/arch_types.hpp"

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
  // At the resume label PIRN_FIRST and PIRN_SECOND hold the words of the resumer. sp, fp and the registers that the
  // exchange saves are this side's again; all others are undefined.
  asm volatile(PIRN_SWITCH_TEXT PIRN_EXCHANGE PIRN_RESUME_LABEL
               : "+r"(message0), "+r"(message1), "+r"(out), "+r"(in)
               :
               : PIRN_SWITCH_CLOBBERS);
  const word received0 = message0, received1 = message1;
  first = received0;
  second = received1;
  fp.restore();
}

namespace detail {
/// `transfer`, where the resumed side finds `tag` in the sp of its peer.
template <word tag>
PIRN_SWITCH_INLINE void transfer_tagging(peer& to, word (&values)[value_words]) noexcept {
  const fp_words fp_control;
  void *const target_pc = to.pc, *const target_sp = to.sp, *const target_fp = to.fp;
  const word sent0 = values[0], sent1 = values[1], sent2 = values[2], sent3 = values[3];
  register void* pc asm(PIRN_PC) = target_pc;
  register void* sp asm(PIRN_SP) = target_sp;
  register void* fp asm(PIRN_FP) = target_fp;
  register word value0 asm(PIRN_VALUE0) = sent0;
  register word value1 asm(PIRN_VALUE1) = sent1;
  register word value2 asm(PIRN_VALUE2) = sent2;
  register word value3 asm(PIRN_VALUE3) = sent3;
  // At the resume label PIRN_PC, PIRN_SP (with the tag) and PIRN_FP hold the new peer, PIRN_VALUE0 to 3 its values.
  asm volatile(PIRN_TRANSFER_TEXT PIRN_LEAVE_TEXT ".if %c[tag]\n\t" PIRN_TAG_TEXT
                                                  ".endif\n\t" PIRN_EXCHANGE PIRN_RESUME_LABEL
               : "+r"(pc), "+r"(sp), "+r"(fp), "+r"(value0), "+r"(value1), "+r"(value2), "+r"(value3)
               : [tag] "i"(tag)
               : PIRN_TO_PC, PIRN_TO_SP, PIRN_TO_FP, PIRN_TRANSFER_CLOBBERS);
  const word received0 = value0, received1 = value1, received2 = value2, received3 = value3;
  void *const resumer_pc = pc, *const resumer_sp = sp, *const resumer_fp = fp;
  to.pc = resumer_pc;
  to.sp = resumer_sp;
  to.fp = resumer_fp;
  values[0] = received0;
  values[1] = received1;
  values[2] = received2;
  values[3] = received3;
  fp_control.restore();
}
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch_generic.hpp"  // IWYU pragma: export

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
  const word sent0 = values[0], sent1 = values[1], sent2 = values[2], sent3 = values[3];
  register void* pc asm(PIRN_PC);
  register void* sp asm(PIRN_SP);
  register void* fp asm(PIRN_FP);
  register word value0 asm(PIRN_VALUE0) = sent0;
  register word value1 asm(PIRN_VALUE1) = sent1;
  register word value2 asm(PIRN_VALUE2) = sent2;
  register word value3 asm(PIRN_VALUE3) = sent3;
  register void* returns_to asm(PIRN_TO_PC) = root;
  register void* fresh asm(PIRN_TO_SP) = fresh_sp;
  // At the jump the same registers hold the caller and its values, which are the entry function's arguments. At the
  // resume label they hold the new peer and its values, as after a `transfer`.
  asm volatile(PIRN_LEAVE_TEXT PIRN_INTO_TEXT PIRN_RESUME_LABEL
               : "=&r"(pc), "=&r"(sp), "=&r"(fp), "+r"(value0), "+r"(value1), "+r"(value2), "+r"(value3),
                 "+r"(returns_to), "+r"(fresh)
               : [landing] PIRN_SYMBOL(&detail::land<entry>)
               : PIRN_TO_FP, PIRN_TRANSFER_CLOBBERS);
  const word received0 = value0, received1 = value1, received2 = value2, received3 = value3;
  void *const resumer_pc = pc, *const resumer_sp = sp, *const resumer_fp = fp;
  to.pc = resumer_pc;
  to.sp = resumer_sp;
  to.fp = resumer_fp;
  values[0] = received0;
  values[1] = received1;
  values[2] = received2;
  values[3] = received3;
  fp_control.restore();
#endif
}

/// The last switch of a context: as `transfer`, but the caller never runs again, and its stack is free as soon as `to`
/// runs. The resumed side finds `instead` as its peer, by which an ending context can name the context to be resumed
/// next.
[[noreturn]] PIRN_ALWAYS_INLINE void transfer_last(const peer& to, const word (&values)[value_words],
                                                   const peer& instead = ended_peer()) noexcept {
  void *const target_pc = to.pc, *const target_sp = to.sp, *const target_fp = to.fp;
  void *const instead_pc = instead.pc, *const instead_sp = instead.sp, *const instead_fp = instead.fp;
  const word sent0 = values[0], sent1 = values[1], sent2 = values[2], sent3 = values[3];
  register void* pc asm(PIRN_PC) = instead_pc;
  register void* sp asm(PIRN_SP) = instead_sp;
  register void* fp asm(PIRN_FP) = instead_fp;
  register word value0 asm(PIRN_VALUE0) = sent0;
  register word value1 asm(PIRN_VALUE1) = sent1;
  register word value2 asm(PIRN_VALUE2) = sent2;
  register word value3 asm(PIRN_VALUE3) = sent3;
  register void* to_pc asm(PIRN_TO_PC) = target_pc;
  register void* to_sp asm(PIRN_TO_SP) = target_sp;
  register void* to_fp asm(PIRN_TO_FP) = target_fp;
  asm volatile(PIRN_EXCHANGE
               :
               : "r"(pc), "r"(sp), "r"(fp), "r"(value0), "r"(value1), "r"(value2), "r"(value3), "r"(to_pc), "r"(to_sp),
                 "r"(to_fp)
               : "memory");
  __builtin_unreachable();
}

/// The last switch of a context by `switch_to`: its stack is free as soon as `to` runs.
[[noreturn]] PIRN_ALWAYS_INLINE void switch_last(const context& to, word first, word second) noexcept {
  context abandoned;
  switch_to(abandoned, to, first, second);
  __builtin_unreachable();
}

/// As `switch_last(prepare(top, entry), first, second)`.
[[noreturn]] PIRN_ALWAYS_INLINE void enter_last(void* top, switch_entry entry, word first, word second) noexcept {
  switch_last(prepare(top, entry), first, second);
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
