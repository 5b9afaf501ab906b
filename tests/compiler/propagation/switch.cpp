// The stand-in for a switch: it overwrites every register that a function would preserve.

#include "switch.hpp"

#include <cstdio>

NONE __attribute__((noinline)) void switch_away() {
#if defined(__x86_64__)
  asm volatile(
      "mov $-1, %%rbx\n\tmov %%rbx, %%r12\n\tmov %%rbx, %%r13\n\tmov %%rbx, %%r14\n\tmov %%rbx, %%r15\n\t"
      "mov %%rbx, %%rcx\n\tmov %%rbx, %%rsi\n\tmov %%rbx, %%rdi\n\tmov %%rbx, %%r8\n\tmov %%rbx, %%r9\n\tmov %%rbx, "
      "%%r10"
      :
      :
      : "rbx", "r12", "r13", "r14", "r15", "rcx", "rsi", "rdi", "r8", "r9", "r10", "memory");
#else
  asm volatile(
      "mov x19, #-1\n\tmov x20, x19\n\tmov x21, x19\n\tmov x22, x19\n\tmov x23, x19\n\tfmov d8, x19\n\tfmov d9, x19"
      :
      :
      : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "d8", "d9", "memory");
#endif
}

static unsigned long sum;

void count(long what) { sum = (sum * 31) + static_cast<unsigned long>(what); }

int main(int argc, char** /*argv*/) {
  extern void run(long);
  for (long i = 0; i != 50; ++i) {
    run(i + argc);
  }
  std::printf("%lu\n", sum);
}
