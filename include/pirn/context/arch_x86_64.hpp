// x86-64, System V. The contract and the stack pictures are in arch.hpp.
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

#include "pirn/context/arch_types.hpp"

// Offsets shared by the assembly and the structs below.
#define PIRN_CONTEXT_PC "0"
#define PIRN_CONTEXT_SP "8"
#define PIRN_CONTEXT_FP "16"

#if defined(__AVX512F__)
#define PIRN_CLOBBER_AVX512                                                                                     \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
      "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define PIRN_CLOBBER_AVX512
#endif
#if defined(__APX_F__)
#define PIRN_CLOBBER_APX \
  , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"
#else
#define PIRN_CLOBBER_APX
#endif
#define PIRN_CLOBBER_FLOAT                                                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",                                   \
      "st(7)" PIRN_CLOBBER_AVX512 PIRN_CLOBBER_APX

// The registers in which transfer_into puts the arguments of its entry function, in the two conventions.
#if defined(PIRN_HAS_NONE)
#define PIRN_INTO_PC "%%r12"
#define PIRN_INTO_SP "%%r13"
#define PIRN_INTO_FP "%%r14"
#define PIRN_INTO_SEVENTH "%%rbp"
#define PIRN_INTO_VALUES "+r"(value0), "+r"(value1), "+r"(value2), "+r"(value3), "+r"(fresh), "+r"(root)
#define PIRN_INTO_CLOBBERS "rcx", "r8", "r9",
#else
#define PIRN_INTO_PC "%%rdi"
#define PIRN_INTO_SP "%%rsi"
#define PIRN_INTO_FP "%%rdx"
#define PIRN_INTO_SEVENTH "%%r15"
#define PIRN_INTO_VALUES                                                                               \
  "+r"(value0), "=&r"(value1), "=&r"(value2), "=&r"(value3), "+r"(fresh), "+r"(root), "+r"(argument3), \
      "+r"(argument4), "+r"(argument5)
#define PIRN_INTO_CLOBBERS
#endif
// How a switch into a fresh stack jumps to the function there. In the large code model that may be too far away for a
// jump, and its address is no constant of position-independent code: then the register `by` holds it.
#if defined(__code_model_large__)
#define PIRN_INTO_JUMP(by) "jmpq *%%" by "\n\t"
#define PIRN_INTO_ADDRESS(function) const auto landing_address = function;
#define PIRN_INTO_REGISTER(by) register auto landing asm(by) = landing_address;
#define PIRN_INTO_OUTPUT , "+r"(landing)
#define PIRN_INTO_INPUT(function)
#define PIRN_INTO_CLOBBER(by)
#else
#define PIRN_INTO_JUMP(by) "jmp %P[landing]\n\t"
#define PIRN_INTO_ADDRESS(function)
#define PIRN_INTO_REGISTER(by)
#define PIRN_INTO_OUTPUT
#define PIRN_INTO_INPUT(function) [landing] "i"(function)
#define PIRN_INTO_CLOBBER(by) by,
#endif
#if defined(__CET__) && (__CET__ & 1)
#define PIRN_LANDING "endbr64\n\t"
#else
#define PIRN_LANDING ""
#endif
// Where a suspended side is resumed: at the beginning of a block that the processor fetches at once.
#define PIRN_RESUME_LABEL "nop\n\t.p2align 4\n1:\n\t" PIRN_LANDING

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

inline constexpr std::size_t red_zone = 128;
inline constexpr std::size_t switch_zone = PIRN_SWITCH_INLINED ? 0 : red_zone;  // that of the out-of-line function
inline constexpr std::size_t root_size = 24;                                    // the root frame

static_assert(offsetof(context, pc) == 0 && offsetof(context, sp) == 8 && offsetof(context, fp) == 16,
              "the assembly below uses these offsets");

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
  asm volatile(PIRN_CFI(".cfi_undefined rip") PIRN_START_PADDING "popq %r11\n\tjmpq *%r11");
}

/// As start_frame, for a `transfer` entry function where the compiler has no preserve_none convention: moves the
/// seven arguments from that convention's registers to those of the ordinary one.
PIRN_NAKED inline void start_frame_plain() {
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

// Resumes the context at rcx. From here to the jump the caller's frame is that of the resumed side, read through rcx:
// CFA = *(rcx + 8), return address at rcx + 0, rbp at rcx + 16. At the jump rdi and rsi hold the words that travel.
// The bytes: 0f 03 72 08 06 (the CFA), 10 10 02 72 00 (return address), 10 06 02 72 10 (rbp).
#define PIRN_RESUME_IN_MEMORY             \
  PIRN_CFI(".cfi_remember_state")         \
  PIRN_CFI(PIRN_CFA_IN("2", "8"))         \
  PIRN_CFI(PIRN_SAVED_IN("16", "2", "0")) \
  PIRN_CFI(PIRN_SAVED_IN("6", "2", "16")) \
  "movq " PIRN_CONTEXT_SP                 \
  "(%%rcx), %%rsp\n\t"                    \
  "movq " PIRN_CONTEXT_FP                 \
  "(%%rcx), %%rbp\n\t"                    \
  "jmpq *" PIRN_CONTEXT_PC "(%%rcx)\n\t" PIRN_CFI(".cfi_restore_state")
// Suspends the caller into the context at rdx and resumes the one at rcx; rax is the address of the resume label. The
// compiler saves everything except pc, sp and fp, since the asm clobbers it. At label 1 rdi and rsi (and r8 in
// switch_to_with_word) hold the words of the resumer. rsp and rbp are this side's again; all others are undefined.
#define PIRN_SWITCH_IN_MEMORY    \
  "leaq 1f(%%rip), %%rax\n\t"    \
  "movq %%rax, " PIRN_CONTEXT_PC \
  "(%%rdx)\n\t"                  \
  "movq %%rsp, " PIRN_CONTEXT_SP \
  "(%%rdx)\n\t"                  \
  "movq %%rbp, " PIRN_CONTEXT_FP "(%%rdx)\n\t" PIRN_RESUME_IN_MEMORY PIRN_RESUME_LABEL

/// Suspends the caller into `from` and resumes `to`. `first` and `second` travel in registers: the resumed side finds
/// them in its own two arguments (a fresh context in its entry's parameters), and on return they hold the words that
/// the caller's resumer sent. If `from` and `to` are the same object, it returns at once with its own words.
PIRN_SWITCH_INLINE void switch_to(context& from, const context& to, word& first, word& second) noexcept {
  const detail::fp_words fp;
  const word sent0 = first, sent1 = second;
  register word message0 asm("rdi") = sent0;
  register word message1 asm("rsi") = sent1;
  register context* out asm("rdx") = &from;
  register const context* in asm("rcx") = &to;
  asm volatile(PIRN_SWITCH_IN_MEMORY
               : "+r"(message0), "+r"(message1), "+r"(out), "+r"(in)
               :
               : "rax", "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", PIRN_CLOBBER_FLOAT, "memory",
                 "cc");
  const word received0 = message0, received1 = message1;
  first = received0;
  second = received1;
  fp.restore();
}

namespace detail {
/// `transfer`, where the resumed side finds `tag` in the sp of its peer. The registers are those in which
/// preserve_none passes (pc, sp, fp, values...), so a fresh context's entry function finds its arguments in place.
template <word tag>
PIRN_SWITCH_INLINE void transfer_tagging(peer& to, word (&values)[value_words]) noexcept {
  const fp_words fp_control;
  void *const target_pc = to.pc, *const target_sp = to.sp, *const target_fp = to.fp;
  const word sent0 = values[0], sent1 = values[1], sent2 = values[2], sent3 = values[3];
  register void* pc asm("r12") = target_pc;
  register void* sp asm("r13") = target_sp;
  register void* fp asm("r14") = target_fp;
  register word value0 asm("r15") = sent0;
  register word value1 asm("rdi") = sent1;
  register word value2 asm("rsi") = sent2;
  register word value3 asm("rdx") = sent3;
  asm volatile(
      // At the jump r8, r9, r10 hold the target's pc, sp, fp, and r12, r13, r14 the caller's, with the tag in r13. The
      // tables describe the target: CFA = r9 (0c 09 00), return address in r8, rbp in r10. At 1 r12, r13, r14 hold the
      // new peer's pc, sp (with its tag), fp, and r15, rdi, rsi, rdx its values; rsp and rbp are this side's again,
      // all others undefined.
      //
      // Moves, not xchg: register moves are renamed away, an exchange is three micro-operations.
      "movq %%r12, %%r8\n\t"
      "movq %%r13, %%r9\n\t"
      "movq %%r14, %%r10\n\t"
      "leaq 1f(%%rip), %%r12\n\t"
      "movq %%rsp, %%r13\n\t"
      ".if %c[tag]\n\torq %[tag], %%r13\n\t.endif\n\t"
      "movq %%rbp, %%r14\n\t"
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("9", "0"))
      PIRN_CFI(".cfi_register rip, r8")
      PIRN_CFI(".cfi_register rbp, r10")
      "movq %%r9, %%rsp\n\t"
      "movq %%r10, %%rbp\n\t"
      "jmpq *%%r8\n\t"
      PIRN_CFI(".cfi_restore_state")
      PIRN_RESUME_LABEL
      : "+r"(pc), "+r"(sp), "+r"(fp), "+r"(value0), "+r"(value1), "+r"(value2), "+r"(value3)
      : [tag] "i"(tag)
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", PIRN_CLOBBER_FLOAT, "memory", "cc");
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

/// As `to = prepare(top, entry); transfer(to, values);`, by a direct jump to the entry function. Ignores the earlier
/// value of `to`.
template <transfer_entry entry>
PIRN_SWITCH_INLINE void transfer_into(void* top, peer& to, word (&values)[value_words]) noexcept {
  const detail::fp_words fp_control;
  void* const fresh_sp = detail::initial_sp(top);
  void* const returns_to_root = detail::entry_plus_8(&root_frame);
  PIRN_INTO_ADDRESS(&detail::land<entry>)
  const word sent0 = values[0], sent1 = values[1], sent2 = values[2], sent3 = values[3];
#if defined(PIRN_HAS_NONE)
  register word value0 asm("r15") = sent0;
  register word value1 asm("rdi") = sent1;
  register word value2 asm("rsi") = sent2;
  register word value3 asm("rdx") = sent3;
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
      "leaq 1f(%%rip), " PIRN_INTO_PC "\n\t"
      "movq %%rsp, " PIRN_INTO_SP "\n\t"
      "movq %%rbp, " PIRN_INTO_FP "\n\t"
      // From here to the jump the caller is the root frame, to which r11 returns: CFA = r10 + 8 (0c 0a 08). Its words
      // are written when sp is below them: `top` may be on the stack that the caller runs on, where a signal handler
      // would overwrite them. At 1 all registers are as at the label of transfer_tagging.
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
      PIRN_RESUME_LABEL
      : "=&r"(pc), "=&r"(sp), "=&r"(fp), PIRN_INTO_VALUES PIRN_INTO_OUTPUT
      : PIRN_INTO_INPUT(&detail::land<entry>)
      : PIRN_INTO_CLOBBER("rax") "rbx", PIRN_INTO_CLOBBERS PIRN_CLOBBER_FLOAT, "memory", "cc");
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

/// The last switch of a context: as `transfer`, but the caller never runs again, and its stack is free as soon as `to`
/// runs. The resumed side finds `instead` as its peer, by which an ending context can name the context to be resumed
/// next.
[[noreturn]] PIRN_ALWAYS_INLINE void transfer_last(const peer& to, const word (&values)[value_words],
                                                   const peer& instead = ended_peer()) noexcept {
  void *const target_pc = to.pc, *const target_sp = to.sp, *const target_fp = to.fp;
  void *const instead_pc = instead.pc, *const instead_sp = instead.sp, *const instead_fp = instead.fp;
  const word sent0 = values[0], sent1 = values[1], sent2 = values[2], sent3 = values[3];
  register void* pc asm("r12") = instead_pc;
  register void* sp asm("r13") = instead_sp;
  register void* fp asm("r14") = instead_fp;
  register word value0 asm("r15") = sent0;
  register word value1 asm("rdi") = sent1;
  register word value2 asm("rsi") = sent2;
  register word value3 asm("rdx") = sent3;
  register void* to_pc asm("r8") = target_pc;
  register void* to_sp asm("r9") = target_sp;
  register void* to_fp asm("r10") = target_fp;
  asm volatile(
      PIRN_CFI(".cfi_remember_state")
      PIRN_CFI(PIRN_CFA_IS("9", "0"))
      PIRN_CFI(".cfi_register rip, r8")
      PIRN_CFI(".cfi_register rbp, r10")
      "movq %%r9, %%rsp\n\t"
      "movq %%r10, %%rbp\n\t"
      "jmpq *%%r8\n\t"
      PIRN_CFI(".cfi_restore_state")
      :
      : "r"(pc), "r"(sp), "r"(fp), "r"(value0), "r"(value1), "r"(value2), "r"(value3), "r"(to_pc), "r"(to_sp),
        "r"(to_fp)
      : "memory");
  __builtin_unreachable();
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
      // From here to the jump the caller is the root frame, to which the word at r10 returns: CFA = r10 + 8 (0c 0a 08).
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
/// Calls `function(first, second)` with an unwind table which says that the caller is `suspended`: CFA = *(rbx + 8),
/// return address at rbx + 0, rbp at rbx + 16, in bytes 0f 03 73 08 06, 10 10 02 73 00, 10 06 02 73 10. The function's
/// address is an argument, since a name inside an asm is invisible to link-time optimization.
PIRN_NAKED inline word walk_as_if_called_by(const context* /*suspended*/, word /*first*/, word /*second*/,
                                            word (* /*function*/)(word, word)) {
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
