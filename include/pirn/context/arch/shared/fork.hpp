// The switches that only fibers need, of AArch64, RISC-V 64 and PowerPC64: a call on another stack whose continuation
// can be resumed by other code, and a symmetric switch that carries a third word. In terms of macros that the ISA files
// define; included by arch/<ISA>_fork.hpp only. The contract and the stack pictures are in arch.hpp.
//
//   fork_root   prepares a stack, for any number of times
//   fork_into   suspends the caller into memory and enters a constant function on such a stack; the caller may be
//               resumed by `switch_to`, or by
//   fork_back   the last switch of that function, with the caller's sp from the register in which it came
//
//   PIRN_THIRD             the third word of `switch_to_with_word`; also the fifth argument of an ordinary function
//   PIRN_WORD_CLOBBERS     PIRN_SWITCH_CLOBBERS without it
//   PIRN_FORK_TEXT         saves the caller in the context at PIRN_TO_FP, and puts its sp into PIRN_FP, where the entry
//                          function has its third argument; the first two are in PIRN_PC and PIRN_SP
//   PIRN_FORK_CLOBBERS     all registers except those that fork_into binds
//   PIRN_FORK_ROOT_SIZE    bytes of the root frame
// and those of words_in_registers.hpp and transfer_into.hpp.
#pragma once

#include "pirn/context/arch/shared/transfer_into.hpp"

// The entry function finds its two words in the registers of its convention, and the caller those of its resumer in the
// registers of `switch_to`. Without preserve_none these are the same.
#if defined(PIRN_HAS_NONE)
#define PIRN_FORK_BIND                          \
  register word message0 asm(PIRN_FIRST);       \
  register word message1 asm(PIRN_SECOND);      \
  register word argument0 asm(PIRN_PC) = sent0; \
  register word argument1 asm(PIRN_SP) = sent1;
#define PIRN_FORK_WORDS "=&r"(message0), "=&r"(message1), "+r"(argument0), "+r"(argument1)
#else
#define PIRN_FORK_BIND                            \
  register word message0 asm(PIRN_FIRST) = sent0; \
  register word message1 asm(PIRN_SECOND) = sent1;
#define PIRN_FORK_WORDS "+r"(message0), "+r"(message1)
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// As `switch_to`, with a third word. Each of these functions may resume a context that the other one has suspended.
/// Then the third word says nothing to its receiver, which has to know that from another source.
PIRN_SWITCH_INLINE void switch_to_with_word(context& from, const context& to, word& first, word& second,
                                            word& third) noexcept {
  const detail::fp_words fp;
  const word sent0 = first, sent1 = second, sent2 = third;
  register word message0 asm(PIRN_FIRST) = sent0;
  register word message1 asm(PIRN_SECOND) = sent1;
  register word message2 asm(PIRN_THIRD) = sent2;
  register context* out asm(PIRN_FROM) = &from;
  register const context* in asm(PIRN_TO) = &to;
  // At the jump PIRN_FIRST, PIRN_SECOND and PIRN_THIRD hold the words that go, at the resume label those of the
  // resumer.
  asm volatile(PIRN_SWITCH_TEXT PIRN_RESUME_ENTRY
               : "+r"(message0), "+r"(message1), "+r"(message2), "+r"(out), "+r"(in)
               :
               : PIRN_WORD_CLOBBERS);
  const word received0 = message0, received1 = message1, received2 = message2;
  first = received0;
  second = received1;
  third = received2;
  fp.restore();
}

/// The bytes that `fork_root` uses at the top of the stack.
inline constexpr std::size_t fork_root_size = PIRN_FORK_ROOT_SIZE;

/// An entry function for `fork_into`: receives the two words and the caller's sp; must not return. PIRN_NONE is part of
/// its type, so that it saves no registers that its caller does not need.
typedef void(PIRN_NONE* fork_entry)(word first, word second, void* sp);

namespace detail {
#if defined(PIRN_INTO_BY_PREPARE)
/// Reached by a switch, of which it takes the third word for the caller's context.
template <fork_entry entry>
__attribute__((visibility("hidden"))) void land_fork(word first, word second, word, word, word caller) {
  entry(first, second, reinterpret_cast<const context*>(caller)->sp);
}
#else
/// As `land` of shared/types.hpp, for a fork_entry.
template <fork_entry entry>
__attribute__((visibility("hidden"))) PIRN_NONE void land_fork(word first, word second, void* sp) {
  entry(first, second, sp);
}
#endif
}  // namespace detail

/// Puts the root frame onto a stack; returns the `root` of `fork_into`.
PIRN_ALWAYS_INLINE void* fork_root(void* top) noexcept { return detail::write_root_frame(top); }

/// Suspends the caller into `from` and enters the function on a stack that was prepared. On return the words are those
/// that the caller's resumer sent.
template <fork_entry entry>
PIRN_SWITCH_INLINE void fork_into(context& from, void* root, word& first, word& second) noexcept {
#if defined(PIRN_INTO_BY_PREPARE)
  static_assert(fork_root_size == 0, "the stack ends at the root");
  const context fresh = detail::prepare_at(root, reinterpret_cast<void*>(&detail::land_fork<entry>), &start_frame);
  word caller = reinterpret_cast<word>(&from);
  switch_to_with_word(from, fresh, first, second, caller);
#else
  const detail::fp_words fp_control;
  context* const out = &from;
  void* const root_address = detail::entry_plus_8(&root_frame);
  const word sent0 = first, sent1 = second;
  PIRN_FORK_BIND
  register context* state asm(PIRN_TO_FP) = out;
  register void* returns_to asm(PIRN_TO_PC) = root_address;
  register void* fresh asm(PIRN_TO_SP) = root;
  // At the jump the entry function's arguments are in place: the words, and the caller's sp. At the resume label
  // PIRN_FIRST and PIRN_SECOND hold the words of the resumer. sp, fp and the registers that the switch saves are this
  // side's again; all others are undefined.
  asm volatile(PIRN_FORK_TEXT PIRN_INTO_TEXT PIRN_RESUME_ENTRY
               : PIRN_FORK_WORDS, "+r"(state), "+r"(returns_to), "+r"(fresh)
               : [landing] PIRN_SYMBOL(&detail::land_fork<entry>)
               : PIRN_FORK_CLOBBERS);
  PIRN_WRITE_WORDS(first, second);
  fp_control.restore();
#endif
}

/// The last switch of a context that was entered by `fork_into`, to the caller, which was suspended into `to` with this
/// sp: its stack is free as soon as the caller runs.
[[noreturn]] PIRN_ALWAYS_INLINE void fork_back(const context& to, void* to_sp, word first, word second) noexcept {
  void *const pc = to.pc, *const fp = to.fp;
  register word message0 asm(PIRN_FIRST) = first;
  register word message1 asm(PIRN_SECOND) = second;
  register void* in_pc asm(PIRN_TO_PC) = pc;
  register void* in_sp asm(PIRN_TO_SP) = to_sp;
  register void* in_fp asm(PIRN_TO_FP) = fp;
  // At the jump PIRN_FIRST and PIRN_SECOND hold the words. There is no resume label: the caller's registers are never
  // read again.
  asm volatile(PIRN_EXCHANGE : : "r"(message0), "r"(message1), "r"(in_pc), "r"(in_sp), "r"(in_fp) : "memory");
  __builtin_unreachable();
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
