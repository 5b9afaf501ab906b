// x86-64, System V: the symmetric switches. The contract and the stack pictures are in arch.hpp.
//
// Facts that shape the code (each has a test in tests/context):
//   * The 128 bytes below sp belong to the interrupted function, and naming rsp as a clobber does not change that:
//     state is stored into a struct, never pushed.
//   * rbp cannot be a clobber (gcc refuses it in a function with a frame pointer): the asm saves it.
//   * A live long double sits in st(0..7), which the mm registers do not stand for: both are named.
//   * With AVX-512 compilers park values in zmm16-31 and k0-7, with APX in r16-31; with the baseline those names
//     are errors.
//   * A read or write of memory may be a call of a sanitizer's runtime, which takes the argument registers: nothing
//     stands between the named registers and the asm but register moves.
//   * A frame with an over-aligned local and alloca is addressed through a base register. Clang before 19 keeps using
//     rbx for that after an asm that clobbers it, silently: there the asm is in a function with its own frame.
//   * A return address is looked up in the unwind tables as pc - 1, so a byte that has the function's ordinary
//     tables stands before each resume label, and prepare never points pc at a function's first byte.
//   * A processor fetches aligned blocks of 16 bytes or more. A resume label begins such a block, and execution never
//     falls into it from above. A yield of fibers is up to a tenth faster for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch/shared/types.hpp"
#include "pirn/context/arch/x86_64/registers.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

inline constexpr std::size_t red_zone = 128;
inline constexpr std::size_t switch_zone = PIRN_SWITCH_INLINED ? 0 : red_zone;  // that of the out-of-line function
inline constexpr std::size_t root_size = 24;                                    // the root frame

/// The frame that every entry function appears to have been called from. Its unwind table says that there is no
/// caller, which ends a backtrace; running into it (an entry function returned) traps.
PIRN_NAKED inline void root_frame() {
  // A return to root_frame + 8 is looked up at + 7, past an endbr64 that the compiler may have put first.
  asm volatile(PIRN_CFI(".cfi_undefined rip") ".fill 12, 1, 0x90\n\tud2");
}

// The padding before the code of a fresh context, so that + 8 is an endbr64 (f3 0f 1e fa, elsewhere a nop) whether or
// not the compiler put one at + 0.
#define PIRN_START_PADDING ".long 0x90909090, 0xfa1e0ff3, 0xfa1e0ff3\n\t"

/// Where a fresh context begins (at + 8, inside the padding, for the reason above): it jumps to the entry function
/// whose address lies on top of the stack, and leaves all argument registers as the switch delivered them.
PIRN_NAKED inline void start_frame() {
  // At the beginning rsp points to the address of the entry function, rbp is 0, and all other registers are as the
  // resumer's jump left them: rdi and rsi hold the messages, or r12 to r15, rdi, rsi and rdx the peer and its values.
  // At the jump rsp points to the return address, which is in root_frame, and r11 holds the address of the entry
  // function.
  asm volatile(PIRN_CFI(".cfi_undefined rip") PIRN_START_PADDING "popq %r11\n\tjmpq *%r11");
}

/// As start_frame, for a `transfer` entry function where the compiler has no preserve_none convention: moves the
/// seven arguments from that convention's registers to those of the ordinary one.
PIRN_NAKED inline void start_frame_plain() {
  // At the beginning r12, r13, r14 hold the peer, r15, rdi, rsi, rdx its values, and rsp points to the address of the
  // entry function. At the jump rdi, rsi, rdx hold the peer and rcx, r8, r9 and the word above the return address its
  // values; r11 holds the address of the entry function.
  asm volatile(PIRN_CFI(".cfi_undefined rip") PIRN_START_PADDING
               "popq %r11\n\t"
               "movq %rdx, 8(%rsp)\n\t"  // the seventh argument is on the stack, above the return address
               "movq %rsi, %r9\n\t"
               "movq %rdi, %r8\n\t"
               "movq %r15, %rcx\n\t"
               "movq %r14, %rdx\n\t"
               "movq %r13, %rsi\n\t"
               "movq %r12, %rdi\n\t"
               "jmpq *%r11");
}

namespace detail {
/// The sp at which an entry function begins. Its return address lies there, a seventh argument above it.
PIRN_ALWAYS_INLINE void** initial_sp(void* top) noexcept {
  return reinterpret_cast<void**>((reinterpret_cast<word>(top) & ~word{15}) - root_size);
}
/// Puts the root frame onto a fresh stack and returns `initial_sp`.
PIRN_ALWAYS_INLINE void** write_root_frame(void* top) noexcept {
  void** const slot = initial_sp(top);
  slot[2] = nullptr;
  slot[1] = nullptr;
  slot[0] = entry_plus_8(&root_frame);
  return slot;
}
PIRN_ALWAYS_INLINE context prepare_at(void* top, void* entry, void (*start)()) noexcept {
  void** slot = write_root_frame(top);
  *--slot = entry;
  return {entry_plus_8(start), slot, nullptr};
}
#if defined(PIRN_HAS_NONE)
inline constexpr auto transfer_start = &start_frame;
#else
inline constexpr auto transfer_start = &start_frame_plain;
#endif

/// The floating-point control words of the running context, put back when it is resumed.
class kept_fp_words {
 public:
  PIRN_ALWAYS_INLINE kept_fp_words() noexcept { asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr_), "=m"(x87_)); }
  PIRN_ALWAYS_INLINE void restore() const noexcept {
    asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr_), "m"(x87_));
  }

 private:
  std::uint32_t mxcsr_;
  std::uint16_t x87_;
};
using fp_words = std::conditional_t<keeps_fp_words, kept_fp_words, shared_fp_words>;
}  // namespace detail

// clang-format off
// `transfer`: r12, r13, r14 hold the target's pc, sp, fp, and then, after PIRN_LEAVE_TEXT, the caller's, which r8, r9,
// r10 still hold of the target. r15, rdi, rsi, rdx hold the values throughout.
//
// Moves, not xchg: register moves are renamed away, an exchange is three micro-operations.
#define PIRN_TRANSFER_TEXT "movq %%r12, %%r8\n\tmovq %%r13, %%r9\n\tmovq %%r14, %%r10\n\t"
#define PIRN_LEAVE_TEXT(tag)                                   \
  "leaq " PIRN_RESUME_ADDRESS "(%%rip), %%r12\n\t"             \
  "movq %%rsp, %%r13\n\t"                                      \
  tag                                                          \
  "movq %%rbp, %%r14\n\t"
#define PIRN_TAG_TEXT "orq %[tag], %%r13\n\t"
// Resumes the context whose pc, sp, fp are in r8, r9, r10. At the jump r12, r13, r14 hold the peer that it finds, with
// the tag in r13, and r15, rdi, rsi, rdx the values. The tables describe the resumed context from the first instruction
// on:
//   0c 09 00         DW_CFA_def_cfa, register 9, offset 0     CFA = r9, its sp
//   .cfi_register    return address in r8, rbp in r10
#define PIRN_EXCHANGE                                          \
  PIRN_CFI(".cfi_remember_state")                              \
  PIRN_CFI(PIRN_CFA_IS("9", "0"))                              \
  PIRN_CFI(".cfi_register rip, r8")                            \
  PIRN_CFI(".cfi_register rbp, r10")                           \
  "movq %%r9, %%rsp\n\t"                                       \
  "movq %%r10, %%rbp\n\t"                                      \
  "jmpq *%%r8\n\t"                                             \
  PIRN_CFI(".cfi_restore_state")
// clang-format on

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/words_in_registers.hpp"  // IWYU pragma: export

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// As `to = prepare(top, entry); transfer(to, values);`, by a direct jump to the entry function. Ignores the earlier
/// value of `to`.
template <transfer_entry entry>
PIRN_SWITCH_INLINE void transfer_into(void* top, peer& to, word (&values)[value_words]) noexcept {
  const detail::fp_words fp_control;
  void* const fresh_sp = detail::initial_sp(top);
  void* const returns_to_root = detail::entry_plus_8(&root_frame);
  PIRN_INTO_ADDRESS(&detail::land<entry>)
  PIRN_READ_VALUES(values);
#if defined(PIRN_HAS_NONE)
  PIRN_BIND_VALUES("r15", "rdi", "rsi", "rdx");
#else
  // The ordinary convention has (pc, sp, fp) in rdi, rsi, rdx, and the last value above the return address.
  register word value0 asm("r15") = sent3;
  register word value1 asm("rdi");
  register word value2 asm("rsi");
  register word value3 asm("rdx");
  register word argument3 asm("rcx") = sent0;
  register word argument4 asm("r8") = sent1;
  register word argument5 asm("r9") = sent2;
#endif
  register void* pc asm("r12");
  register void* sp asm("r13");
  register void* fp asm("r14");
  register void* fresh asm("r10") = fresh_sp;
  register void* root asm("r11") = returns_to_root;
  PIRN_INTO_REGISTER("rax")
  asm volatile(
      "leaq " PIRN_RESUME_ADDRESS "(%%rip), " PIRN_INTO_PC "\n\t"
      "movq %%rsp, " PIRN_INTO_SP "\n\t"
      "movq %%rbp, " PIRN_INTO_FP "\n\t"
      // From here to the jump the tables say that the caller is the root frame:
      //   0c 0a 08         DW_CFA_def_cfa, register 10, offset 8    CFA = r10 + 8
      //   .cfi_register    return address in r11, the one in root_frame
      // The frame's words are written when sp is below them: `top` may be on the stack that the caller runs on, where a
      // signal handler would overwrite them. At the jump rsp points to the return address, rbp is 0, and the caller and
      // its values are where the entry function has its seven arguments: in r12, r13, r14, r15, rdi, rsi, rdx; or in
      // rdi, rsi, rdx, rcx, r8, r9 and the word above the return address.
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("10", "8"))
      PIRN_CFI(".cfi_register rip, r11")
      "movq %%r10, %%rsp\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %%rbp, 16(%%rsp)\n\t"
      "movq " PIRN_INTO_SEVENTH ", 8(%%rsp)\n\t"
      "movq %%r11, (%%rsp)\n\t"
      PIRN_INTO_JUMP("rax")
      PIRN_CFI(".cfi_restore_state")
      // A `transfer` resumes this side: r12, r13, r14 hold the new peer's pc, sp (with its tag), fp, and r15, rdi, rsi,
      // rdx its values. rsp and rbp are this side's again; all others are undefined.
      PIRN_RESUME_ENTRY
      : "=&r"(pc), "=&r"(sp), "=&r"(fp), PIRN_INTO_VALUES PIRN_INTO_OUTPUT
      : PIRN_INTO_INPUT(&detail::land<entry>)
      : PIRN_INTO_CLOBBER("rax") "rbx", PIRN_INTO_CLOBBERS PIRN_CLOBBER_FLOAT, "memory", "cc");
  PIRN_WRITE_PEER_AND_VALUES(to, values);
  fp_control.restore();
}

/// The last switch of a context by `switch_to`: its stack is free as soon as `to` runs.
[[noreturn]] PIRN_ALWAYS_INLINE void switch_last(const context& to, word first, word second) noexcept {
  const context* const target = &to;
  register word message0 asm("rdi") = first;
  register word message1 asm("rsi") = second;
  register const context* in asm("rcx") = target;
  asm volatile(PIRN_RESUME_IN_MEMORY : : "r"(message0), "r"(message1), "r"(in) : "memory");
  __builtin_unreachable();
}

/// As `switch_last(prepare(top, entry), first, second)`, on a stack that was prepared at `top` before and whose context
/// has ended: its root frame is still there.
[[noreturn]] PIRN_ALWAYS_INLINE void enter_last(void* top, switch_entry entry, word first, word second) noexcept {
  void** const root = detail::initial_sp(top);
  register word message0 asm("rdi") = first;
  register word message1 asm("rsi") = second;
  register void** fresh asm("r10") = root;
  register switch_entry function asm("r11") = entry;
  asm volatile(
      // From here to the jump the tables say that the caller is the root frame:
      //   0c 0a 08       DW_CFA_def_cfa, register 10, offset 8    CFA = r10 + 8
      //   .cfi_offset    return address at CFA - 8, where it was written before
      // At the jump rdi and rsi hold the words, rsp points to the return address, and rbp is 0.
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("10", "8"))
      PIRN_CFI(".cfi_offset rip, -8")
      "movq %%r10, %%rsp\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "jmpq *%%r11\n\t"
      PIRN_CFI(".cfi_restore_state")
      :
      : "r"(message0), "r"(message1), "r"(fresh), "r"(function)
      : "memory");
  __builtin_unreachable();
}

/// Whether this thread runs under a hardware shadow stack. A switch would make the next return fault, so callers
/// refuse to start instead.
PIRN_ALWAYS_INLINE bool shadow_stack_active() noexcept {
  word pointer = 0;
  asm volatile("rdsspq %0" : "+r"(pointer));  // leaves the register alone where the feature is off
  return pointer != 0;
}

namespace detail {
/// Calls `function(first, second)` with an unwind table which says that the caller is `suspended`. The function's
/// address is an argument, since a name inside an asm is invisible to link-time optimization.
PIRN_NAKED inline word walk_as_if_called_by(const context* /*suspended*/, word /*first*/, word /*second*/,
                                            word (* /*function*/)(word, word)) {
  // At the call rbx holds `suspended`, rdi and rsi the words, rcx the function. The tables of the call:
  //   0f 03 73 08 06   DW_CFA_def_cfa_expression, 3 bytes: DW_OP_breg3 (rbx) + 8, DW_OP_deref    CFA = *(rbx + 8), its
  //   sp 10 10 02 73 00   DW_CFA_expression, register 16, 2 bytes: DW_OP_breg3 (rbx) + 0            return address 10
  //   06 02 73 10   DW_CFA_expression, register 6, 2 bytes: DW_OP_breg3 (rbx) + 16            rbp
  // clang-format off
  asm volatile(
      "pushq %rbx\n\t"
      PIRN_CFI(".cfi_adjust_cfa_offset 8")
      PIRN_CFI(".cfi_rel_offset rbx, 0")
      "movq %rdi, %rbx\n\t"
      "movq %rsi, %rdi\n\t"
      "movq %rdx, %rsi\n\t"
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IN("3", "8"))
      PIRN_CFI(PIRN_SAVED_IN("16", "3", "0"))
      PIRN_CFI(PIRN_SAVED_IN("6", "3", "16"))
      PIRN_CFI(".cfi_same_value rbx")
      "callq *%rcx\n\t"
      PIRN_CFI(".cfi_restore_state")
      "popq %rbx\n\t"
      PIRN_CFI(".cfi_adjust_cfa_offset -8")
      PIRN_CFI(".cfi_restore rbx")
      "retq");
  // clang-format on
}
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
