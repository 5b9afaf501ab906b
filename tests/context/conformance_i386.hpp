// i386.
#pragma once

#include <unwind.h>

#include "conformance_x86.hpp"

namespace conformance {

// ---- registers by value ---------------------------------------------------------------------------------------------

// The x87 stack is filled and emptied again: everything that a switch left on it is lost.
PIRN_ALWAYS_INLINE void spoil_all_registers() {
  asm volatile(
      "movl $0x5a5a5a5a, %%eax\n\tmovl %%eax, %%ebx\n\tmovl %%eax, %%ecx\n\tmovl %%eax, %%edx\n\t"
      "movl %%eax, %%esi\n\tmovl %%eax, %%edi\n\t"
      "fldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\t"
      "fstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\t"
      "fstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\t"
#if defined(__SSE2__)
      "movd %%eax, %%xmm0\n\tmovd %%eax, %%xmm1\n\tmovd %%eax, %%xmm2\n\tmovd %%eax, %%xmm3\n\t"
      "movd %%eax, %%xmm4\n\tmovd %%eax, %%xmm5\n\tmovd %%eax, %%xmm6\n\tmovd %%eax, %%xmm7\n\t"
#endif
      :
      :
      : "eax", "ebx", "ecx", "edx", "esi", "edi", PIRN_CLOBBER_FLOAT, "memory", "cc");
}

// One bit for each of ebx, ebp, esi, edi.
word changed_registers(void* argument, void (*function)(void*)) PIRN_ASM_NAME("changed_registers");
PIRN_ASM_FUNCTION("changed_registers",

                  "movl 4(%esp), %eax\n\tmovl 8(%esp), %ecx\n\t"
                  "pushl %ebx\n\tpushl %ebp\n\tpushl %esi\n\tpushl %edi\n\tsubl $8, %esp\n\tpushl %eax\n\t"
                  "movl $0x11, %ebx\n\tmovl $0x22, %ebp\n\tmovl $0x33, %esi\n\tmovl $0x44, %edi\n\t"
                  "calll *%ecx\n\t"
                  "xorl %eax, %eax\n\txorl %ecx, %ecx\n\t"
                  "cmpl $0x11, %ebx\n\tsetne %cl\n\torl %ecx, %eax\n\t"
                  "cmpl $0x22, %ebp\n\tsetne %cl\n\tshll $1, %ecx\n\torl %ecx, %eax\n\txorl %ecx, %ecx\n\t"
                  "cmpl $0x33, %esi\n\tsetne %cl\n\tshll $2, %ecx\n\torl %ecx, %eax\n\txorl %ecx, %ecx\n\t"
                  "cmpl $0x44, %edi\n\tsetne %cl\n\tshll $3, %ecx\n\torl %ecx, %eax\n\t"
                  "addl $12, %esp\n\tpopl %edi\n\tpopl %esi\n\tpopl %ebp\n\tpopl %ebx\n\tretl");

#if defined(__SSE2__)
typedef double vector __attribute__((vector_size(16)));
#define ANY_VECTOR "+x"
#else
typedef double vector __attribute__((vector_size(8)));  // one in memory: without SSE there is no such register
#define ANY_VECTOR "+m"
#endif
inline constexpr int vector_groups = 1;

// ---- flags and control words --------------------------------------------------------------------------------------

PIRN_ALWAYS_INLINE bool direction_flag() { return (__builtin_ia32_readeflags_u32() & 0x400u) != 0; }

struct control_words {
  unsigned mxcsr = 0;
  unsigned short x87 = 0;
  static control_words now() {
    control_words words;
#if defined(__SSE__)
    asm volatile("stmxcsr %0" : "=m"(words.mxcsr));
    words.mxcsr &= ~0x3fu;  // sticky exception flags are state, not control
#endif
    asm volatile("fnstcw %0" : "=m"(words.x87));
    return words;
  }
  void set() const {
#if defined(__SSE__)
    asm volatile("ldmxcsr %0" : : "m"(mxcsr));
#endif
    asm volatile("fldcw %0" : : "m"(x87));
  }
  bool operator==(const control_words& other) const {
#if defined(__SSE__)
    return mxcsr == other.mxcsr && x87 == other.x87;
#else
    return x87 == other.x87;
#endif
  }
};

inline constexpr control_words usual_words{0x1f80, 0x037f}, words_up{0x5f80, 0x0b7f}, words_down{0x3f80, 0x077f};

// ---- the stack ----------------------------------------------------------------------------------------------------

inline constexpr word entry_sp_offset = 12;  // beside a multiple of 16
PIRN_ALWAYS_INLINE word stack_pointer() {
  word sp;
  asm volatile("movl %%esp, %0" : "=r"(sp));
  return sp;
}
void note_sp_of_switch_to(word, word) PIRN_ASM_NAME("note_sp_of_switch_to");
PIRN_ASM_FUNCTION("note_sp_of_switch_to", "movl 8(%esp), %eax\n\tmovl %esp, (%eax)\n\tjmpl *4(%eax)");
void note_sp_of_transfer(void*, void*, void*, word, word, word, word) PIRN_ASM_NAME("note_sp_of_transfer");
PIRN_ASM_FUNCTION("note_sp_of_transfer", "movl 28(%esp), %eax\n\tmovl %esp, (%eax)\n\tjmpl *4(%eax)");

// ---- signals --------------------------------------------------------------------------------------------------------

inline constexpr bool backtrace_reaches_start = true;
// clang's tables are wrong in epilogues, between the pushes of arguments, and while the code fetches its pc.
#if defined(__clang__)
inline constexpr bool tables_hold_everywhere = false;
#else
inline constexpr bool tables_hold_everywhere = true;
#endif
inline constexpr bool kernel_frames_are_known = true;
inline constexpr bool can_single_step = tables_hold_everywhere;
/// Position-independent code fetches its pc by a call of a function of two instructions. The startup code brings a copy
/// of it without unwind tables. The compiler chooses which of several registers a function uses.
inline bool in_startup_thunk(word pc) {
  const auto* const code = reinterpret_cast<const unsigned char*>(pc);
  const auto* const begin = code[0] == 0xc3 ? code - 3 : code;
  return begin[0] == 0x8b && begin[2] == 0x24 && begin[3] == 0xc3 &&
         _Unwind_FindEnclosingFunction(const_cast<unsigned char*>(begin)) == nullptr;
}
inline word interrupted_pc(const void* signal_context) {
  return static_cast<word>(static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gregs[REG_EIP]);
}

// ---- checks of this instruction set alone ---------------------------------------------------------------------------

template <class Shape>
void check_particulars(Shape&) {}

}  // namespace conformance
