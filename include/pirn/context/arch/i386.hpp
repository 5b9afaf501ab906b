// i386, System V. The contract and the stack pictures are in arch.hpp.
//
// Five registers can be named in an asm, but `transfer` carries seven words. In registers are the peer's sp and fp
// (ebx, edi) and two values (eax, edx), which most continuations and all generators pass. The peer's pc and the other
// two values stay in the sender's frame, and ecx points to them. The sender is suspended, or has ended and no other
// context has run since, so they are still there when the resumed side copies them. That block also holds the address
// to jump to.
//
// Facts that shape the code (docs/abi.md names the test of each):
//   * No compiler has preserve_none here, and arguments are passed on the stack: fresh contexts are entered through a
//     frame that puts them there; transfer_into writes them itself.
//   * There is no red zone: nothing but the switch lies below esp.
//   * Position-independent code has no address of a label without a call: `call` to the next instruction, then pop, is
//     the one that the return predictor ignores. It is done when the unwind tables already describe the other context.
//   * ebp cannot be a clobber (gcc refuses it in a function with a frame pointer): the asm saves it.
//   * A live long double or double sits in st(0..7), which the mm registers do not stand for.
//   * A frame with an over-aligned local and alloca is addressed through esi; clang refuses an asm that names it there.
//     So a context that leaves pushes its own esi and loads that of the resumed one, before esp changes, while no
//     signal handler can have run on that stack.
//   * At -O0 gcc puts the set-up of the GOT pointer into naked functions: those here are written in assembly whole.
//   * A return address is looked up in the unwind tables as pc - 1, so a byte that has the function's ordinary
//     tables stands before each resume label, and prepare never points pc at a function's first byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch/shared/operands.hpp"
#include "pirn/context/arch/shared/types.hpp"
#include "pirn/context/arch/text/i386.h"  // IWYU pragma: export

// A block that `transfer` leaves in the sender's frame: two values, the sender's pc, and the address that it jumps to.
#define PIRN_BLOCK_OWN_PC "8"
#define PIRN_BLOCK_PC "12"
#define PIRN_BLOCK_SP "16"
#define PIRN_BLOCK_FP "20"

// Where transfer_into jumps to: position-independent code has no constant for it here.
#if defined(__PIC__)
#define PIRN_JUMP_TO_LANDING "jmpl *%%edi\n\t"
#define PIRN_LANDING_OPERAND
#else
#define PIRN_JUMP_TO_LANDING "jmp %P[landing]\n\t"
#define PIRN_LANDING_OPERAND [landing] "i"(&detail::land<entry>)
#endif
// Copies the peer and its values, as a `transfer` has left them, and writes them to `to` and `values`. The registers
// are copied before memory is read, as shared/operands.hpp explains.
#define PIRN_WRITE_BLOCK(to, values)                             \
  const word received0 = value0, received1 = value1;             \
  void *const resumer_sp = sp, *const resumer_fp = fp;           \
  const auto* const incoming = static_cast<const word*>(block);  \
  void* const resumer_pc = reinterpret_cast<void*>(incoming[2]); \
  values[2] = incoming[0];                                       \
  values[3] = incoming[1];                                       \
  PIRN_STORE_PEER(to);                                           \
  values[0] = received0;                                         \
  values[1] = received1

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

inline constexpr std::size_t red_zone = 4;
inline constexpr std::size_t switch_zone = red_zone;
inline constexpr std::size_t root_size = 0;

/// The frame that every entry function appears to have been called from. Its unwind table says that there is no
/// caller, which ends a backtrace; running into it (an entry function returned) traps.
void root_frame() PIRN_ASM_NAME("root_frame");
PIRN_ASM_FUNCTION("root_frame", ".cfi_undefined eip\n\t.fill 12, 1, 0x90\n\tud2");

// An endbr32 at + 8, which is a nop elsewhere.
#define PIRN_START_PADDING ".cfi_undefined eip\n\t.fill 8, 1, 0x90\n\t.long 0xfb1e0ff3\n\t"

/// Where a fresh context begins (at + 8): it puts the messages into the entry function's arguments, and jumps to that
/// function. Its address lies on top of the stack.
void start_frame() PIRN_ASM_NAME("start_frame");
// At the beginning esp points to the address of the entry function, below the one in root_frame and room for arguments;
// eax and edx hold the messages. At the jump esp points to the return address, and ecx holds the function.
PIRN_ASM_FUNCTION("start_frame",
                  PIRN_START_PADDING "movl %eax, 8(%esp)\n\tmovl %edx, 12(%esp)\n\tpopl %ecx\n\tjmpl *%ecx");

/// As start_frame, for a `transfer` entry function and its seven arguments.
void start_frame_plain() PIRN_ASM_NAME("start_frame_plain");
// At the beginning ebx and edi hold the peer's sp and fp, eax and edx two values; ecx points to the block with its pc
// at
// + 8, the other values at + 0 and + 4. At the jump esp points to the return address, and ecx holds the function.
PIRN_ASM_FUNCTION("start_frame_plain", PIRN_START_PADDING
                  "movl %ebx, 12(%esp)\n\tmovl %edi, 16(%esp)\n\tmovl %eax, 20(%esp)\n\tmovl %edx, 24(%esp)\n\t"
                  "movl 8(%ecx), %eax\n\tmovl %eax, 8(%esp)\n\t"
                  "movl (%ecx), %eax\n\tmovl %eax, 28(%esp)\n\t"
                  "movl 4(%ecx), %eax\n\tmovl %eax, 32(%esp)\n\t"
                  "popl %ecx\n\tjmpl *%ecx");

namespace detail {
/// The sp at which an entry function begins. Its return address lies there, its arguments, seven at most, above it.
PIRN_ALWAYS_INLINE void** initial_sp(void* top) noexcept {
  return reinterpret_cast<void**>(reinterpret_cast<word>(top) & ~word{15}) - 9;
}
/// Puts the root frame onto a fresh stack and returns `initial_sp`.
PIRN_ALWAYS_INLINE void** write_root_frame(void* top) noexcept {
  void** const slot = initial_sp(top);
  *slot = entry_plus_8(&root_frame);
  return slot;
}
PIRN_ALWAYS_INLINE context prepare_at(void* top, void* entry, void (*start)()) noexcept {
  void** slot = write_root_frame(top);
  *--slot = entry;
  return {entry_plus_8(start), slot, nullptr};
}
inline constexpr auto transfer_start = &start_frame_plain;

/// The floating-point control words of the running context, put back when it is resumed.
class kept_fp_words {
 public:
  PIRN_ALWAYS_INLINE kept_fp_words() noexcept {
    asm volatile("fnstcw %0" : "=m"(x87_));
#if defined(__SSE__)
    asm volatile("stmxcsr %0" : "=m"(mxcsr_));
#endif
  }
  PIRN_ALWAYS_INLINE void restore() const noexcept {
    asm volatile("fldcw %0" : : "m"(x87_));
#if defined(__SSE__)
    asm volatile("ldmxcsr %0" : : "m"(mxcsr_));
#endif
  }

 private:
#if defined(__SSE__)
  std::uint32_t mxcsr_;
#endif
  std::uint16_t x87_;
};
using fp_words = std::conditional_t<keeps_fp_words, kept_fp_words, shared_fp_words>;
}  // namespace detail

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
  void *const target_sp = to.sp, *const target_fp = to.fp;
  const word sent0 = values[0], sent1 = values[1];
  word outgoing[4];
  outgoing[0] = values[2];
  outgoing[1] = values[3];
  outgoing[3] = reinterpret_cast<word>(to.pc);
  register void* sp asm("ebx") = target_sp;
  register void* fp asm("edi") = target_fp;
  register word value0 asm("eax") = sent0;
  register word value1 asm("edx") = sent1;
  register word* block asm("ecx") = outgoing;
  // clang-format off
  asm volatile(
      // At the jump ebx (with the tag) and edi hold the caller's sp and fp, eax and edx two values, ecx the block; esp, ebp
      // and esi are those of `to`. From here to the jump the tables say that the caller's frame is that of `to`:
      //   0c 03 00         DW_CFA_def_cfa, register 3, offset 0                               CFA = ebx, its sp
      //   10 08 02 71 0c   DW_CFA_expression, register 8, 2 bytes: DW_OP_breg1 (ecx) + 12     return address at ecx + 12
      //   .cfi_register    ebp in edi, until it is exchanged
      //   .cfi_offset      esi at CFA - 4, until it is loaded
      // and behind the first exchange:
      //   0c 04 00         DW_CFA_def_cfa, register 4, offset 0                               CFA = esp
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("3", "0"))
      PIRN_CFI(PIRN_SAVED_IN("8", "1", "12"))
      PIRN_CFI(".cfi_register ebp, edi")
      PIRN_CFI(".cfi_offset esi, -4")
      PIRN_STORE_LABEL(PIRN_BLOCK_OWN_PC "(%%ecx)")
      "pushl %%esi\n\t"
      "movl -4(%%ebx), %%esi\n\t"
      PIRN_CFI(".cfi_same_value esi")
      "xchgl %%esp, %%ebx\n\t"
      PIRN_CFI(PIRN_CFA_IS("4", "0"))
      "leal 4+%c[tag](%%ebx), %%ebx\n\t"
      "xchgl %%ebp, %%edi\n\t"
      PIRN_CFI(".cfi_same_value ebp")
      "jmpl *" PIRN_BLOCK_PC "(%%ecx)\n\t"
      PIRN_CFI(".cfi_restore_state")
      // Here ebx (with the tag) and edi hold the new peer's sp and fp, eax and edx its first two values. ecx points to
      // its block: the other two values at + 0 and + 4, its pc at + 8. esp, ebp and esi are this side's again.
      PIRN_RESUME_ENTRY
      : "+r"(sp), "+r"(fp), "+r"(value0), "+r"(value1), "+r"(block)
      : [tag] "i"(tag)
      : PIRN_CLOBBER_FLOAT, "memory", "cc");
  // clang-format on
  PIRN_WRITE_BLOCK(to, values);
  fp_control.restore();
}
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/generic.hpp"  // IWYU pragma: export

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// As `to = prepare(top, entry); transfer(to, values);`, by a direct jump to the entry function where code is not
/// position-independent. Ignores the earlier value of `to`.
template <transfer_entry entry>
PIRN_SWITCH_INLINE void transfer_into(void* top, peer& to, word (&values)[value_words]) noexcept {
  const detail::fp_words fp_control;
  void** const fresh = detail::initial_sp(top);
  const word* const sent = values;
  register void* sp asm("ebx") = detail::entry_plus_8(&root_frame);
  register void* fp asm("edi") = reinterpret_cast<void*>(&detail::land<entry>);
  register word value0 asm("eax") = reinterpret_cast<word>(sent);
  register word value1 asm("edx");
  register void* block asm("ecx") = fresh;
  // clang-format off
  asm volatile(
      "movl %%esp, %%edx\n\t"
      // From here to the jump the tables say that the caller is the root frame:
      //   0c 01 04         DW_CFA_def_cfa, register 1, offset 4    CFA = ecx + 4
      //   .cfi_register    return address in ebx, and then, by .cfi_offset, at CFA - 4
      // That word and the arguments are written when esp is below them: `top` may be on the stack that the caller runs
      // on, where a signal handler would overwrite them. At the jump esp points to that word, above which are the
      // caller's pc, sp (from edx) and fp and the values (from the array at eax); ebp is 0.
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("1", "4"))
      PIRN_CFI(".cfi_register eip, ebx")
      "pushl %%esi\n\t"
      "movl %%ecx, %%esp\n\t"
      "movl %%ebx, (%%ecx)\n\t"
      PIRN_CFI(".cfi_offset eip, -4")
      "movl %%edx, 8(%%ecx)\n\t"
      "movl %%ebp, 12(%%ecx)\n\t"
      PIRN_STORE_LABEL("4(%%ecx)")
      "movl (%%eax), %%ebx\n\tmovl %%ebx, 16(%%ecx)\n\t"
      "movl 4(%%eax), %%ebx\n\tmovl %%ebx, 20(%%ecx)\n\t"
      "movl 8(%%eax), %%ebx\n\tmovl %%ebx, 24(%%ecx)\n\t"
      "movl 12(%%eax), %%ebx\n\tmovl %%ebx, 28(%%ecx)\n\t"
      "xorl %%ebp, %%ebp\n\t"
      PIRN_JUMP_TO_LANDING
      PIRN_CFI(".cfi_restore_state")
      // Here all registers are as at the label of transfer_tagging: this side is resumed by a transfer.
      PIRN_RESUME_ENTRY
      : "+r"(sp), "+r"(fp), "+r"(value0), "=&r"(value1), "+r"(block)
      : PIRN_LANDING_OPERAND
      : PIRN_CLOBBER_FLOAT, "memory", "cc");
  // clang-format on
  PIRN_WRITE_BLOCK(to, values);
  fp_control.restore();
}

/// The last switch of a context: as `transfer`, but the caller never runs again, and its stack is free as soon as `to`
/// runs. The resumed side finds `instead` as its peer, by which an ending context can name the context to be resumed
/// next.
[[noreturn]] PIRN_ALWAYS_INLINE void transfer_last(const peer& to, const word (&values)[value_words],
                                                   const peer& instead = ended_peer()) noexcept {
  word outgoing[6];
  outgoing[0] = values[2];
  outgoing[1] = values[3];
  outgoing[2] = reinterpret_cast<word>(instead.pc);
  outgoing[3] = reinterpret_cast<word>(to.pc);
  outgoing[4] = reinterpret_cast<word>(to.sp);
  outgoing[5] = reinterpret_cast<word>(to.fp);
  void *const instead_sp = instead.sp, *const instead_fp = instead.fp;
  const word sent0 = values[0], sent1 = values[1];
  register void* sp asm("ebx") = instead_sp;
  register void* fp asm("edi") = instead_fp;
  register word value0 asm("eax") = sent0;
  register word value1 asm("edx") = sent1;
  register word* block asm("ecx") = outgoing;
  // clang-format off
  asm volatile(
      // At the jump ebx and edi hold the sp and fp of the peer that the resumed side finds, eax and edx two values, ecx
      // the block; esp, ebp and esi are those of `to`. From here to the jump the tables describe `to`:
      //   0f 03 71 10 06   DW_CFA_def_cfa_expression, 3 bytes: DW_OP_breg1 (ecx) + 16, DW_OP_deref    CFA = *(ecx + 16)
      //   10 08 02 71 0c   DW_CFA_expression, register 8, 2 bytes: DW_OP_breg1 (ecx) + 12             return address
      //   10 05 02 71 14   DW_CFA_expression, register 5, 2 bytes: DW_OP_breg1 (ecx) + 20             ebp
      //   .cfi_offset      esi at CFA - 4, until it is loaded
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IN("1", "16"))
      PIRN_CFI(PIRN_SAVED_IN("8", "1", "12"))
      PIRN_CFI(PIRN_SAVED_IN("5", "1", "20"))
      PIRN_CFI(".cfi_offset esi, -4")
      "movl " PIRN_BLOCK_SP "(%%ecx), %%esi\n\t"
      "movl -4(%%esi), %%esi\n\t"
      PIRN_CFI(".cfi_same_value esi")
      "movl " PIRN_BLOCK_SP "(%%ecx), %%esp\n\t"
      "movl " PIRN_BLOCK_FP "(%%ecx), %%ebp\n\t"
      "jmpl *" PIRN_BLOCK_PC "(%%ecx)\n\t"
      PIRN_CFI(".cfi_restore_state")
      :
      : "r"(sp), "r"(fp), "r"(value0), "r"(value1), "r"(block)
      : "memory");
  // clang-format on
  __builtin_unreachable();
}

/// Whether this thread runs under a hardware shadow stack. A switch would make the next return fault, so callers
/// refuse to start instead. The kernel has none for this ISA, but the processor may.
PIRN_ALWAYS_INLINE bool shadow_stack_active() noexcept {
  word pointer = 0;
  asm volatile(".byte 0xf3, 0x0f, 0x1e, 0xc8" : "+a"(pointer));  // rdsspd %eax: a nop where the feature is off
  return pointer != 0;
}

namespace detail {
/// Calls `function(first, second)` with an unwind table which says that the caller is `suspended`.
word walk_as_if_called_by(const context* suspended, word first, word second, word (*function)(word, word))
    PIRN_ASM_NAME("walk_as_if_called_by");
// At the call ebx holds `suspended`, edx the function, and the words are at esp. The tables of the call have the bytes
// of `switch_to`: CFA = *(ebx + 4), return address at ebx + 0, ebp at ebx + 8, esi at CFA - 4.
PIRN_ASM_FUNCTION("walk_as_if_called_by",
                  "pushl %ebx\n\t"
                  ".cfi_adjust_cfa_offset 4\n\t.cfi_rel_offset ebx, 0\n\t"
                  "movl 8(%esp), %ebx\n\tmovl 12(%esp), %eax\n\tmovl 16(%esp), %ecx\n\tmovl 20(%esp), %edx\n\t"
                  "subl $8, %esp\n\t"
                  ".cfi_adjust_cfa_offset 8\n\t"
                  "pushl %ecx\n\t"
                  ".cfi_adjust_cfa_offset 4\n\t"
                  "pushl %eax\n\t"
                  ".cfi_adjust_cfa_offset 4\n\t"
                  ".cfi_remember_state\n\t"
                  PIRN_CFA_IN("3", "4") "\n\t"
                  PIRN_SAVED_IN("8", "3", "0") "\n\t"
                  PIRN_SAVED_IN("5", "3", "8") "\n\t"
                  ".cfi_offset esi, -4\n\t"
                  ".cfi_same_value ebx\n\t"
                  "calll *%edx\n\t"
                  ".cfi_restore_state\n\t"
                  "addl $16, %esp\n\t"
                  ".cfi_adjust_cfa_offset -16\n\t"
                  "popl %ebx\n\t"
                  ".cfi_adjust_cfa_offset -4\n\t.cfi_restore ebx\n\t"
                  "retl");
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
