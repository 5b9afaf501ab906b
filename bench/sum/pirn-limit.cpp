// The remaining gain: the loops of pirn.cpp by hand, with its switch, its registers and its tests of a tagged peer.
// Each loop begins at its own resume label and ends with the switch, so that an element takes two jumps. Compilers put
// the resume label in the middle of a loop and jump back to its begin, which makes four.
#include "sum.hpp"

#if !defined(__x86_64__)
#error "pirn-limit: written for x86-64"
#endif

namespace {

/// Returns the sum of n down to 1, for n != 0.
[[gnu::noinline]] std::uint64_t total(std::uint64_t n) {
  alignas(64) static char stack[65536];
  std::uint64_t sum = 0;
  asm volatile(
      // The consumer keeps its sum in rbp, the producer its counter; both begin at their switch.
      "movq %%rbp, %%r8\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "leaq 4f(%%rip), %%r12\n\t"
      "movq %[top], %%r13\n\t"
      "movq %[n], %%r14\n\t"
      "jmp 2f\n\t"

      ".p2align 6\n"
      "1:\n\t"  // the consumer is resumed: the producer in r12, r13, r14, the element in rax
      "testb $1, %%r13b\n\t"
      "jne 7f\n\t"
      "addq %%rax, %%rbp\n"
      "2:\n\t"
      "leaq 1b(%%rip), %%rdi\n\t"
      "movq %%rsp, %%r15\n\t"
      "movq %%rbp, %%rsi\n\t"
      "movq %%r13, %%rsp\n\t"
      "movq %%r14, %%rbp\n\t"
      "jmpq *%%r12\n\t"

      ".p2align 6\n"
      "3:\n\t"  // the producer is resumed: the consumer in rdi, r15, rsi
      "testb $1, %%r15b\n\t"
      "jne 6f\n\t"
      "decq %%rbp\n\t"
      "je 5f\n"
      "4:\n\t"
      "movq %%rbp, %%rax\n\t"
      "leaq 3b(%%rip), %%r12\n\t"
      "movq %%rsp, %%r13\n\t"
      "movq %%rbp, %%r14\n\t"
      "movq %%r15, %%rsp\n\t"
      "movq %%rsi, %%rbp\n\t"
      "jmpq *%%rdi\n"
      "5:\n\t"  // the producer ends
      "movl $1, %%r13d\n\t"
      "movq %%r15, %%rsp\n\t"
      "movq %%rsi, %%rbp\n\t"
      "jmpq *%%rdi\n"
      "6:\n\t"  // it is never cancelled
      "ud2\n"
      "7:\n\t"
      "movq %%rbp, %%rax\n\t"
      "movq %%r8, %%rbp\n\t"
      : "=a"(sum)
      : [n] "d"(n), [top] "c"(stack + sizeof(stack))
      : "rdi", "rsi", "r8", "r12", "r13", "r14", "r15", "memory", "cc");
  return sum;
}

}  // namespace

int main() {
  const auto sum = bench::opaque(&total);
  bench::sum_rows("pirn-limit", sum, sum, "no library: the loops of pirn by hand");
}
