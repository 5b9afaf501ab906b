// x86-64.
#pragma once

#include "conformance_x86.hpp"

namespace conformance {

// ---- registers by value -------------------------------------------------------------------------------------------

// The x87 stack is filled and emptied again: everything that a switch left on it is lost.
PIRN_ALWAYS_INLINE void spoil_all_registers() {
  asm volatile(
      "movq $0x5a5a5a5a, %%rax\n\tmovq %%rax, %%rbx\n\tmovq %%rax, %%rcx\n\tmovq %%rax, %%rdx\n\t"
      "movq %%rax, %%rsi\n\tmovq %%rax, %%rdi\n\tmovq %%rax, %%r8\n\tmovq %%rax, %%r9\n\t"
      "movq %%rax, %%r10\n\tmovq %%rax, %%r11\n\tmovq %%rax, %%r12\n\tmovq %%rax, %%r13\n\t"
      "movq %%rax, %%r14\n\tmovq %%rax, %%r15\n\t"
      "fldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\t"
      "fstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\t"
      "fstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\t"
      "movq %%rax, %%xmm0\n\tmovq %%rax, %%xmm1\n\tmovq %%rax, %%xmm2\n\tmovq %%rax, %%xmm3\n\t"
      "movq %%rax, %%xmm4\n\tmovq %%rax, %%xmm5\n\tmovq %%rax, %%xmm6\n\tmovq %%rax, %%xmm7\n\t"
      "movq %%rax, %%xmm8\n\tmovq %%rax, %%xmm9\n\tmovq %%rax, %%xmm10\n\tmovq %%rax, %%xmm11\n\t"
      "movq %%rax, %%xmm12\n\tmovq %%rax, %%xmm13\n\tmovq %%rax, %%xmm14\n\tmovq %%rax, %%xmm15\n\t"
#if defined(__AVX512F__)
      "vpbroadcastq %%rax, %%zmm16\n\tvpbroadcastq %%rax, %%zmm17\n\tvpbroadcastq %%rax, %%zmm18\n\t"
      "vpbroadcastq %%rax, %%zmm19\n\tvpbroadcastq %%rax, %%zmm20\n\tvpbroadcastq %%rax, %%zmm21\n\t"
      "vpbroadcastq %%rax, %%zmm22\n\tvpbroadcastq %%rax, %%zmm23\n\tvpbroadcastq %%rax, %%zmm24\n\t"
      "vpbroadcastq %%rax, %%zmm25\n\tvpbroadcastq %%rax, %%zmm26\n\tvpbroadcastq %%rax, %%zmm27\n\t"
      "vpbroadcastq %%rax, %%zmm28\n\tvpbroadcastq %%rax, %%zmm29\n\tvpbroadcastq %%rax, %%zmm30\n\t"
      "vpbroadcastq %%rax, %%zmm31\n\t"
      "kmovw %%eax, %%k1\n\tkmovw %%eax, %%k2\n\tkmovw %%eax, %%k3\n\tkmovw %%eax, %%k4\n\t"
      "kmovw %%eax, %%k5\n\tkmovw %%eax, %%k6\n\tkmovw %%eax, %%k7\n\t"
#endif
      :
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        PIRN_CLOBBER_FLOAT, "memory", "cc");
}

// One bit for each of rbx, rbp, r12, r13, r14, r15.
PIRN_NAKED inline word changed_registers(void* /*argument*/, void (* /*function*/)(void*)) {
  asm volatile(
      "pushq %rbx\n\tpushq %rbp\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\tsubq $8, %rsp\n\t"
      "movq $0x11, %rbx\n\tmovq $0x22, %rbp\n\tmovq $0x33, %r12\n\t"
      "movq $0x44, %r13\n\tmovq $0x55, %r14\n\tmovq $0x66, %r15\n\t"
      "callq *%rsi\n\t"
      "xorl %eax, %eax\n\txorl %ecx, %ecx\n\t"
      "cmpq $0x11, %rbx\n\tsetne %cl\n\torl %ecx, %eax\n\t"
      "cmpq $0x22, %rbp\n\tsetne %cl\n\tshll $1, %ecx\n\torl %ecx, %eax\n\txorl %ecx, %ecx\n\t"
      "cmpq $0x33, %r12\n\tsetne %cl\n\tshll $2, %ecx\n\torl %ecx, %eax\n\txorl %ecx, %ecx\n\t"
      "cmpq $0x44, %r13\n\tsetne %cl\n\tshll $3, %ecx\n\torl %ecx, %eax\n\txorl %ecx, %ecx\n\t"
      "cmpq $0x55, %r14\n\tsetne %cl\n\tshll $4, %ecx\n\torl %ecx, %eax\n\txorl %ecx, %ecx\n\t"
      "cmpq $0x66, %r15\n\tsetne %cl\n\tshll $5, %ecx\n\torl %ecx, %eax\n\t"
      "addq $8, %rsp\n\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbp\n\tpopq %rbx\n\tretq");
}

#if defined(__AVX512F__)
typedef double vector __attribute__((vector_size(64)));
#define ANY_VECTOR "+v"
#elif defined(__AVX__)
typedef double vector __attribute__((vector_size(32)));
#define ANY_VECTOR "+x"
#else
typedef double vector __attribute__((vector_size(16)));
#define ANY_VECTOR "+x"
#endif

inline constexpr int vector_groups = sizeof(vector) == 64 ? 4 : 2;
// ---- flags and control words ------------------------------------------------------------------------------------

PIRN_ALWAYS_INLINE bool direction_flag() {
  return (static_cast<unsigned long long>(__builtin_ia32_readeflags_u64()) & 0x400u) != 0;
}

struct control_words {
  unsigned mxcsr = 0;
  unsigned short x87 = 0;
  static control_words now() {
    control_words words;
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(words.mxcsr), "=m"(words.x87));
    words.mxcsr &= ~0x3fu;  // sticky exception flags are state, not control
    return words;
  }
  void set() const { asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(x87)); }
  bool operator==(const control_words& other) const { return mxcsr == other.mxcsr && x87 == other.x87; }
};

inline constexpr control_words usual_words{0x1f80, 0x037f}, words_up{0x5f80, 0x0b7f}, words_down{0x3f80, 0x077f};

// ---- the stack ----------------------------------------------------------------------------------------------------

inline constexpr word entry_sp_offset = 8;  // beside a multiple of 16
PIRN_ALWAYS_INLINE word stack_pointer() {
  word sp;
  asm volatile("movq %%rsp, %0" : "=r"(sp));
  return sp;
}
PIRN_NAKED inline void note_sp_of_switch_to(word, word) { asm volatile("movq %rsp, (%rsi)\n\tjmpq *8(%rsi)"); }
PIRN_NONE PIRN_NAKED inline void note_sp_of_transfer(void*, void*, void*, word, word, word, word) {
#if defined(PIRN_HAS_NONE)
  asm volatile("movq %rsp, (%rdx)\n\tjmpq *8(%rdx)");
#else
  asm volatile("movq 8(%rsp), %rax\n\tmovq %rsp, (%rax)\n\tjmpq *8(%rax)");
#endif
}

// ---- signals --------------------------------------------------------------------------------------------------------

inline constexpr bool backtrace_reaches_start = true;
inline constexpr bool tables_hold_everywhere = true;
inline constexpr bool kernel_frames_are_known = true;
inline constexpr bool can_single_step = true;
inline word interrupted_pc(const void* signal_context) {
  return static_cast<word>(static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gregs[REG_RIP]);
}

// ---- checks of this instruction set alone ---------------------------------------------------------------------------

#if defined(__AVX512F__)
template <class Shape>
CONFORMANCE_KEEP bool mask_registers_live(Shape& shape) {
  using mask = unsigned short;
  mask a = opaque<mask>(1), b = opaque<mask>(2), c = opaque<mask>(3), d = opaque<mask>(4), e = opaque<mask>(5),
       f = opaque<mask>(6), g = opaque<mask>(7);
  asm volatile("" : "+Yk"(a), "+Yk"(b), "+Yk"(c), "+Yk"(d), "+Yk"(e), "+Yk"(f), "+Yk"(g));
  shape.resume();
  asm volatile("" : "+Yk"(a), "+Yk"(b), "+Yk"(c), "+Yk"(d), "+Yk"(e), "+Yk"(f), "+Yk"(g));
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7;
}
#endif

template <class Shape>
void check_particulars([[maybe_unused]] Shape& shape) {
#if defined(__AVX512F__)
  expect(mask_registers_live(shape), Shape::name, "live mask registers");
#endif
}

}  // namespace conformance
