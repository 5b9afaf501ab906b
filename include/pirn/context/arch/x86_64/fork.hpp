// x86-64: a call on another stack whose continuation can be resumed by other code, for fibers. The contract and the
// stack pictures are in arch.hpp, the facts that shape the code in switch.hpp. Included by arch_fiber.hpp.
//
//   fork_root   prepares a stack, for any number of times
//   fork_into   suspends the caller into memory and enters a constant function on such a stack; the caller may be
//               resumed by `switch_to`, or by
//   fork_back   the last switch of that function, with the caller's sp from the register in which it came
//
// The sp is passed both ways, since each is better for one side. Code that takes the continuation finds it in memory.
// The function on the other stack keeps it in a register, which survives its calls: read from memory it would be known
// only after two loads, the first of which gives their address, and every access to the stack waits for sp.
#pragma once

#include "pirn/context/arch/x86_64/switch.hpp"

// The registers in which the entry function finds its arguments, in the two conventions.
#if defined(PIRN_HAS_NONE)
#define PIRN_FORK_SP "%%r14"
#define PIRN_FORK_WORDS "=&r"(message0), "=&r"(message1), "+r"(argument0), "+r"(argument1)
#define PIRN_FORK_CLOBBERS "rdx",
#else
#define PIRN_FORK_SP "%%rdx"
#define PIRN_FORK_WORDS "+r"(message0), "+r"(message1)
#define PIRN_FORK_CLOBBERS "rdx", "r12", "r13",
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// An entry function for `fork_into`: receives the two words and the caller's sp; must not return. PIRN_NONE is part of
/// its type, so that it saves no registers that its caller does not need.
typedef void(PIRN_NONE* fork_entry)(word first, word second, void* sp);

/// The bytes that `fork_root` uses at the top of the stack.
inline constexpr std::size_t fork_root_size = root_size;

namespace detail {
/// As `land` of shared/types.hpp, for a fork_entry.
template <fork_entry entry>
__attribute__((visibility("hidden"))) PIRN_NONE void land_fork(word first, word second, void* sp) {
  entry(first, second, sp);
}
}  // namespace detail

/// Puts the root frame onto a stack; returns the `root` of `fork_into`.
PIRN_ALWAYS_INLINE void* fork_root(void* top) noexcept { return detail::write_root_frame(top); }

/// Suspends the caller into `from` and enters the function on a stack that was prepared. On return the words are those
/// that the caller's resumer sent.
template <fork_entry entry>
PIRN_SWITCH_INLINE void fork_into(context& from, void* root, word& first, word& second) noexcept {
  const detail::fp_words fp_control;
  context* const out = &from;
  PIRN_INTO_ADDRESS(&detail::land_fork<entry>)
  const word sent0 = first, sent1 = second;
#if defined(PIRN_HAS_NONE)
  register word message0 asm("rdi");
  register word message1 asm("rsi");
  register word argument0 asm("r12") = sent0;
  register word argument1 asm("r13") = sent1;
#else
  register word message0 asm("rdi") = sent0;
  register word message1 asm("rsi") = sent1;
#endif
  register context* state asm("r9") = out;
  register void* fresh asm("r10") = root;
  PIRN_INTO_REGISTER("r11")
  asm volatile(
      "leaq " PIRN_RESUME_ADDRESS "(%%rip), %%rax\n\t"
      "movq %%rsp, " PIRN_FORK_SP "\n\t"
      "movq %%rax, " PIRN_CONTEXT_PC "(%%r9)\n\t"
      "movq %%rsp, " PIRN_CONTEXT_SP "(%%r9)\n\t"
      "movq %%rbp, " PIRN_CONTEXT_FP "(%%r9)\n\t"
      // From here to the jump the tables say that the caller is the root frame:
      //   0c 0a 08       DW_CFA_def_cfa, register 10, offset 8    CFA = r10 + 8
      //   .cfi_offset    return address at CFA - 8, where fork_root has written it
      // At the jump rsp points to that word, rbp is 0, and the words and the caller's sp are where the entry function
      // has its arguments: in r12, r13, r14, or in rdi, rsi, rdx.
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("10", "8"))
      PIRN_CFI(".cfi_offset rip, -8")
      "movq %%r10, %%rsp\n\t"
      "xorl %%ebp, %%ebp\n\t"
      PIRN_INTO_JUMP("r11")
      PIRN_CFI(".cfi_restore_state")
      // Here rdi and rsi hold the words of the resumer. rsp and rbp are this side's again; all others are undefined.
      PIRN_RESUME_ENTRY
      : PIRN_FORK_WORDS, "+r"(state), "+r"(fresh) PIRN_INTO_OUTPUT
      : PIRN_INTO_INPUT(&detail::land_fork<entry>)
      : PIRN_INTO_CLOBBER("r11") "rax", "rbx", "rcx", "r8", PIRN_FORK_CLOBBERS "r14", "r15", PIRN_CLOBBER_FLOAT, "memory", "cc");
  PIRN_WRITE_WORDS(first, second);
  fp_control.restore();
}

/// The last switch of a context that was entered by `fork_into`, to the caller, which was suspended into `to` with this
/// sp: its stack is free as soon as the caller runs.
[[noreturn]] PIRN_ALWAYS_INLINE void fork_back(const context& to, void* to_sp, word first, word second) noexcept {
  register word message0 asm("rdi") = first;
  register word message1 asm("rsi") = second;
  register const context* in asm("rcx") = &to;
  register void* sp asm("r9") = to_sp;
  asm volatile(
      // At the jump rdi and rsi hold the words, rcx the context; rsp and rbp are those of `to`. From here to the jump the
      // tables say that the caller's frame is that of `to`:
      //   0c 09 00         DW_CFA_def_cfa, register 9, offset 0                              CFA = r9, its sp
      //   10 10 02 72 00   DW_CFA_expression, register 16, 2 bytes: DW_OP_breg2 (rcx) + 0    return address at rcx + 0
      //   10 06 02 72 10   DW_CFA_expression, register 6, 2 bytes: DW_OP_breg2 (rcx) + 16    rbp at rcx + 16
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("9", "0"))
      PIRN_CFI(PIRN_SAVED_IN("16", "2", "0"))
      PIRN_CFI(PIRN_SAVED_IN("6", "2", "16"))
      "movq %%r9, %%rsp\n\t"
      "movq " PIRN_CONTEXT_FP "(%%rcx), %%rbp\n\t"
      "jmpq *" PIRN_CONTEXT_PC "(%%rcx)\n\t"
      PIRN_CFI(".cfi_restore_state")
      :
      : "r"(message0), "r"(message1), "r"(in), "r"(sp)
      : "memory");
  __builtin_unreachable();
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
