// x86-64: asymmetric transfer. As arch::transfer, but a producer and its consumer are never alike. So each direction
// has separate registers for the target and for the context that leaves, and no register has to be moved out of the way
// first.
//
//                       target            leaves, or comes       words that go     words that come
//   resume_producer     r12, r13, r14     rdi, r15, rsi          rdx               rax, rcx
//   yield_to_consumer   rdi, r15, rsi     r12, r13, r14          rax, rcx          rdx
//   delegate_to         r12, r13, r14     rdi, r15, rsi          rdx               rdx
//
// The peer of a side is therefore in the same registers when it comes and when the side resumes it again, and a switch
// has 6 instructions instead of 9. Everything except sp and fp is clobbered, as by any switch. Since each side saves fp
// in the switch, compilers keep a loop variable in it: the counter of one side and the sum of the other never touch
// memory. The choice of registers is not arbitrary: ordinary calls preserve r12 to r15, so these need not be moved away
// for calls on cold paths, which compilers do on the hot path. rbx is not used, since it may be a frame's base
// register. A variant in which the sides share out more registers, each keeping two across the switch, was tried and
// made no loop faster.
//
// The resume label begins a block of 32 bytes, so that one fetch brings the code after a switch; the bytes before it
// are never executed. A recursive body gains 3 % (8 % where two hardware threads share the fetch), a plain loop
// nothing.
//
// The producer's tests, for blocks of bodies and for a tagged resumer, stand beside the switch. As branches out of it
// (an asm goto whose cold code returned to the hot path without the compiler's knowledge) they were wrong: to the
// compiler the cold path ends in a call that may throw, so it keeps the values that handlers need in places of the
// frame where the hot path has something else. A plain loop has no more instructions without them.
//
// Nor is the resume label one of the compiler's, the target of an asm goto, so that a loop could begin there and need
// no jump back to its begin. Clang up to 22 takes such a target for code that is never reached: it keeps the variables
// of the loop in memory, and moves instructions over the switch. An element of the plain sum took 1.93 ns that way, and
// 1.37 ns as it is (AMD EPYC, Zen 4); with the frequencies set right by a false edge, 1.37 ns with as many jumps.
#pragma once

#include <cstdint>

#include "pirn/context/arch/x86_64/switch.hpp"
#include "pirn/context/detail/open_blocks.hpp"

#define PIRN_ASYMMETRIC_RESUME_ENTRY "nop\n\t.p2align 5\n" PIRN_RESUME_LABEL PIRN_LANDING
// clang-format off
// `to` are the registers of the target, `own` those of the context that leaves, each sp as the number of an r8 to r15;
// `tag` is an instruction that tags the latter. At the jump the `own` registers hold the caller. At the resume label the
// `to` registers hold the context that comes, in delegate_to the `own` registers; rsp and rbp are this side's again.
#define PIRN_ASYMMETRIC_SWITCH(to_pc, to_sp, to_fp, own_pc, own_sp, own_fp, tag) \
  "leaq " PIRN_RESUME_ADDRESS "(%%rip), %%" own_pc "\n\t"                        \
  "movq %%rsp, %%r" own_sp "\n\t"                                                \
  "movq %%rbp, %%" own_fp "\n\t"                                                 \
  tag                                                                            \
  PIRN_ASYMMETRIC_JUMP(to_pc, to_sp, to_fp)                                      \
  PIRN_ASYMMETRIC_RESUME_ENTRY
// From the first instruction to the jump the tables describe the context that is being resumed:
//   0c <to_sp> 00    DW_CFA_def_cfa, register 13 or 15, offset 0    CFA = `to_sp`, its sp
//   .cfi_register    return address in `to_pc`, rbp in `to_fp`
#define PIRN_ASYMMETRIC_JUMP(to_pc, to_sp, to_fp)                                \
  PIRN_CFI(".cfi_remember_state")                                                \
  PIRN_CFI(PIRN_CFA_IS(to_sp, "0"))                                              \
  PIRN_CFI(".cfi_register rip, " to_pc)                                          \
  PIRN_CFI(".cfi_register rbp, " to_fp)                                          \
  "movq %%r" to_sp ", %%rsp\n\t"                                                 \
  "movq %%" to_fp ", %%rbp\n\t"                                                  \
  "jmpq *%%" to_pc "\n\t"                                                        \
  PIRN_CFI(".cfi_restore_state")
// clang-format on

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// As start_frame, for a producer: puts the words that a switch delivers into the arguments of the ordinary convention.
PIRN_NAKED inline void start_producer() {
  // At the beginning rdi, r15, rsi hold the consumer's pc, sp, fp, rdx the word, and rsp points to the address of
  // producer_entry. At the jump rdi, rsi, rdx, rcx hold the arguments of that, and r11 its address.
  asm volatile(PIRN_CFI(".cfi_undefined rip") PIRN_START_PADDING "popq %r11\n\tmovq %r15, %rcx\n\tjmpq *%r11");
}

/// The function in which a producer begins. It has the ordinary convention, since a body is inlined into it: for a body
/// with alloca and an over-aligned variable the frame has a base register, which clang refuses to a function that does
/// not preserve it.
template <class Run>
[[noreturn, gnu::visibility("hidden")]] void producer_entry(void* pc, void* fp, word message, void* sp) {
  Run::run(peer{pc, sp, fp}, message);
}
/// Builds a producer on a fresh stack.
template <class Run>
PIRN_ALWAYS_INLINE peer prepare_producer(void* top) noexcept {
  return detail::prepare_at(top, reinterpret_cast<void*>(&producer_entry<Run>), &start_producer);
}

/// Suspends the consumer, tagged if `tag` is 1, and resumes the producer `to` with the word `first`. The two words
/// of its element come back.
template <word tag = 0>
PIRN_SWITCH_INLINE void resume_producer(peer& to, word& first, word& second) noexcept {
  const detail::fp_words fp_control;
  PIRN_READ_PEER(target, to);
  const word sent = first;
  PIRN_BIND_PEER(target, "r12", "r13", "r14");
  register word message asm("rdx") = sent;
  register word in0 asm("rax");
  register word in1 asm("rcx");
  // At the jump rdi, r15 (with the tag) and rsi hold the consumer, rdx the word. At the resume label r12, r13 (with its
  // tag) and r14 hold the producer that resumes this side, rax and rcx the words of its element; rsp and rbp are this
  // side's again, all others undefined.
  // NOLINTNEXTLINE(bugprone-branch-clone): the instructions differ
  if constexpr (tag == 0) {
    asm volatile(PIRN_ASYMMETRIC_SWITCH("r12", "13", "r14", "rdi", "15", "rsi", "")
                 : "+r"(pc), "+r"(sp), "+r"(fp), "+r"(message), "=r"(in0), "=r"(in1)
                 :
                 : "rbx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r15", PIRN_CLOBBER_FLOAT, "memory", "cc");
  } else {
    asm volatile(PIRN_ASYMMETRIC_SWITCH("r12", "13", "r14", "rdi", "15", "rsi", "orq $1, %%r15\n\t")
                 : "+r"(pc), "+r"(sp), "+r"(fp), "+r"(message), "=r"(in0), "=r"(in1)
                 :
                 : "rbx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r15", PIRN_CLOBBER_FLOAT, "memory", "cc");
  }
  const word received0 = in0, received1 = in1;
  PIRN_WRITE_PEER(to);
  first = received0;
  second = received1;
  fp_control.restore();
}

/// As `resume_producer(to, first, second)`, by a direct jump to the first function of a producer that was prepared at
/// `top` and has not begun. Ignores the earlier value of `to`.
template <class Run>
PIRN_SWITCH_INLINE void begin_producer(void* top, peer& to, word& first, word& second) noexcept {
  const detail::fp_words fp_control;
  void** const root = detail::initial_sp(top);
  const word sent = first;
  PIRN_INTO_ADDRESS(&producer_entry<Run>)
  register void* pc asm("r12");
  register void* sp asm("r13");
  register void* fp asm("r14");
  register word message asm("rdx") = sent;
  register word in1 asm("rcx");
  register word in0 asm("rax");
  register void** fresh asm("r10") = root;
  PIRN_INTO_REGISTER("r11")
  asm volatile(
      // At the jump rdi, rsi, rdx and rcx hold the arguments of producer_entry: the consumer's pc and fp, the word, and
      // the consumer's sp.
      "leaq " PIRN_RESUME_ADDRESS "(%%rip), %%rdi\n\t"
      "movq %%rbp, %%rsi\n\t"
      "movq %%rsp, %%rcx\n\t"
      // From here to the jump the tables say that the caller is the root frame:
      //   0c 0a 08       DW_CFA_def_cfa, register 10, offset 8    CFA = r10 + 8
      //   .cfi_offset    return address at CFA - 8, where prepare_producer has put it
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("10", "8"))
      PIRN_CFI(".cfi_offset rip, -8")
      "movq %%r10, %%rsp\n\t"
      "xorl %%ebp, %%ebp\n\t"
      PIRN_INTO_JUMP("r11")
      PIRN_CFI(".cfi_restore_state")
      // As in resume_producer.
      PIRN_ASYMMETRIC_RESUME_ENTRY
      : "=&r"(pc), "=&r"(sp), "=&r"(fp), "+r"(message), "=&r"(in0), "=&r"(in1), "+r"(fresh) PIRN_INTO_OUTPUT
      : PIRN_INTO_INPUT(&producer_entry<Run>)
      : PIRN_INTO_CLOBBER("r11") "rbx", "rdi", "rsi", "r8", "r9", "r15", PIRN_CLOBBER_FLOAT, "memory", "cc");
  const word received0 = in0, received1 = in1;
  PIRN_WRITE_PEER(to);
  first = received0;
  second = received1;
  fp_control.restore();
}

/// Suspends a producer and resumes its consumer `to`; the message of its next resumer replaces `first`.
PIRN_SWITCH_INLINE void yield_to_consumer(peer& to, word& first, word second) noexcept {
  const detail::fp_words fp_control;
  PIRN_READ_PEER(target, to);
  const word sent0 = first, sent1 = second;
  PIRN_BIND_PEER(target, "rdi", "r15", "rsi");
  register word out0 asm("rax") = sent0;
  register word out1 asm("rcx") = sent1;
  register word message asm("rdx");
  // At the jump r12, r13, r14 hold the producer, rax and rcx the words. At the resume label rdi, r15 (with its tag) and
  // rsi hold the consumer that resumes this side, rdx its word; rsp and rbp are this side's again, all others
  // undefined.
  asm volatile(PIRN_ASYMMETRIC_SWITCH("rdi", "15", "rsi", "r12", "13", "r14", "")
               : "+r"(pc), "+r"(sp), "+r"(fp), "+r"(out0), "+r"(out1), "=r"(message)
               :
               : "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", PIRN_CLOBBER_FLOAT, "memory", "cc");
  const word received = message;
  PIRN_WRITE_PEER(to);
  first = received;
  fp_control.restore();
}

/// Suspends a producer, tagged, and resumes another one; the message of its next resumer replaces `first`.
PIRN_SWITCH_INLINE void delegate_to(peer& to, word& first) noexcept {
  const detail::fp_words fp_control;
  PIRN_READ_PEER(target, to);
  const word sent = first;
  register void* to_pc asm("r12") = target_pc;
  register void* to_sp asm("r13") = target_sp;
  register void* to_fp asm("r14") = target_fp;
  register word message asm("rdx") = sent;
  register void* pc asm("rdi");
  register void* sp asm("r15");
  register void* fp asm("rsi");
  // At the jump rdi, r15 (with the tag) and rsi hold this producer, rdx the word. At the resume label they hold the
  // consumer that resumes this side, and its word; rsp and rbp are this side's again, all others undefined.
  asm volatile(PIRN_ASYMMETRIC_SWITCH("r12", "13", "r14", "rdi", "15", "rsi", "orq $1, %%r15\n\t")
               : "+r"(to_pc), "+r"(to_sp), "+r"(to_fp), "+r"(message), "=&r"(pc), "=&r"(sp), "=&r"(fp)
               :
               : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", PIRN_CLOBBER_FLOAT, "memory", "cc");
  const word received = message;
  PIRN_WRITE_PEER(to);
  first = received;
  fp_control.restore();
}

/// The last switch of a producer, to its consumer.
[[noreturn]] PIRN_ALWAYS_INLINE void finish_to_consumer(const peer& to) noexcept {
  PIRN_READ_PEER(target, to);
  PIRN_BIND_PEER(target, "rdi", "r15", "rsi");
  register word ended asm("r13") = peer_tag;
  // At the jump r13 holds the tag, so that the consumer finds its peer tagged.
  asm volatile(PIRN_ASYMMETRIC_JUMP("rdi", "15", "rsi") : : "r"(pc), "r"(sp), "r"(fp), "r"(ended) : "memory");
  __builtin_unreachable();
}

/// The last switch of a producer, to one that delegates to it.
[[noreturn]] PIRN_ALWAYS_INLINE void finish_to_delegator(const peer& to) noexcept {
  PIRN_READ_PEER(target, to);
  PIRN_BIND_PEER(target, "r12", "r13", "r14");
  register word ended asm("r15") = peer_tag;
  // At the jump r15 holds the tag, so that the delegator finds its peer tagged.
  asm volatile(PIRN_ASYMMETRIC_JUMP("r12", "13", "r14") : : "r"(pc), "r"(sp), "r"(fp), "r"(ended) : "memory");
  __builtin_unreachable();
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
