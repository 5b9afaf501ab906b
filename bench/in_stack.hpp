// A generator in the form of Li and others, "Stackful Coroutine Made Fast", section 3.2: its body runs below the frame
// of its consumer, and both sides use one stack pointer, so that a switch has three instructions. It is here to be
// measured and is not safe: tests/coro/in_stack_experiment.py shows where it breaks, docs/generators.md says why.
#pragma once

#if !defined(__x86_64__)
#error "in_stack: written for x86-64"
#endif

#include <cstdint>

namespace bench::in_stack {

// What a switch may change: all but sp and fp, and the registers of its operands.
#define IN_STACK_CLOBBERS                                                                                              \
  "rbx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", \
      "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",     \
      "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc"

// Makes the compiler address the variables of the function by fp, as the form requires of a consumer, since sp is the
// body's while the generator lives.
#define IN_STACK_ADDRESS_BY_FP()                                  \
  do {                                                            \
    std::uint64_t bytes = 16;                                     \
    asm volatile("" : "+r"(bytes));                               \
    asm volatile("" : : "r"(__builtin_alloca(bytes)) : "memory"); \
  } while (false)

// A body that is not inlined has its way back to the consumer in memory.
#if defined(__clang__)
#define IN_STACK_INLINED [[clang::always_inline]]
#else
#define IN_STACK_INLINED
#endif

/// The argument of a body: how it resumes its consumer.
class yield {
 public:
  yield(void* pc, void* fp) : pc_(pc), fp_(fp) {}
  [[gnu::always_inline]] void operator()(std::uint64_t element) {
    void* pc = pc_;
    void* fp = fp_;
    // At the jump rdx and rsi hold this side, rax the element; at the label rdi and rsi hold the consumer.
    asm volatile("leaq 1f(%%rip), %%rdx\n\txchgq %%rbp, %%rsi\n\tjmpq *%%rdi\n1:"
                 : "+D"(pc), "+S"(fp), "+a"(element)
                 :
                 : "rcx", "rdx", IN_STACK_CLOBBERS);
    pc_ = pc;
    fp_ = fp;
  }
  /// The last switch of a body. The consumer puts sp back.
  [[noreturn, gnu::always_inline]] void finish() {
    asm volatile("xorl %%edx, %%edx\n\tmovq %%rsi, %%rbp\n\tjmpq *%%rdi" : : "D"(pc_), "S"(fp_) : "memory");
    __builtin_unreachable();
  }

 private:
  void* pc_;
  void* fp_;
};

/// A generator that has run up to its first element, and is true while there is one.
template <typename Body>
class generator {
 public:
  [[gnu::always_inline]] explicit generator(Body& body) {
    asm volatile("movq %%rsp, %0" : "=r"(sp_));
    void* pc = &body;
    void* fp;
    void (*entry)(void*, void*, Body*) = &run;
    // 128 bytes below sp may be the consumer's.
    asm volatile(
        "leaq 1f(%%rip), %%rdi\n\tmovq %%rbp, %%rsi\n\tleaq -128(%%rsp), %%rsp\n\tandq $-16, %%rsp\n\tcallq *%%rcx\n1:"
        : "+d"(pc), "=&S"(fp), "=a"(element_), "+c"(entry)
        :
        : "rdi", IN_STACK_CLOBBERS);
    pc_ = pc;
    fp_ = fp;
  }
  generator(const generator&) = delete;
  [[gnu::always_inline]] ~generator() { asm volatile("movq %0, %%rsp" : : "r"(sp_) : "memory"); }

  [[gnu::always_inline]] explicit operator bool() const { return pc_ != nullptr; }
  [[gnu::always_inline]] std::uint64_t operator*() const { return element_; }
  [[gnu::always_inline]] void resume() {
    void* pc = pc_;
    void* fp = fp_;
    std::uint64_t element;
    asm volatile("leaq 1f(%%rip), %%rdi\n\txchgq %%rbp, %%rsi\n\tjmpq *%%rdx\n1:"
                 : "+d"(pc), "+S"(fp), "=a"(element)
                 :
                 : "rcx", "rdi", IN_STACK_CLOBBERS);
    pc_ = pc;
    fp_ = fp;
    element_ = element;
  }

 private:
  [[gnu::noinline]] static void run(void* pc, void* fp, Body* body) {
    yield to(pc, fp);
    IN_STACK_INLINED (*body)(to);
    to.finish();
  }

  void* pc_;
  void* fp_;
  std::uint64_t element_;
  void* sp_;
};

}  // namespace bench::in_stack
