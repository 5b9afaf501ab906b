// Reads of a thread-local word by an asm, relative to the thread pointer: compilers may cache the address of an
// ordinary thread-local variable across a switch, after which the thread may be another one. AArch64 and RISC-V 64;
// x86-64 has an addressing mode for it. PowerPC64 needs r2 for it, which the function around an asm may not have set.
//
//   PIRN_READ_THREAD_WORD(to, name)   statement: reads the word whose symbol `name` (a string) has into `to`, a
//   variable
//                                     of 8 bytes. The model is initial-exec. Undefined where there is no such asm
#pragma once

#if defined(__aarch64__) && !defined(__ILP32__)
#define PIRN_READ_THREAD_WORD(to, name)                                              \
  do {                                                                               \
    void* thread_pointer;                                                            \
    asm volatile("adrp %0, :gottprel:" name "\n\tldr %0, [%0, #:gottprel_lo12:" name \
                 "]\n\tmrs %1, tpidr_el0"                                            \
                 "\n\tldr %0, [%0, %1]"                                              \
                 : "=&r"(to), "=&r"(thread_pointer));                                \
  } while (false)
#elif defined(__riscv) && __riscv_xlen == 64
#define PIRN_READ_THREAD_WORD(to, name) \
  asm volatile("la.tls.ie %0, " name    \
               "\n\tadd %0, %0, tp"     \
               "\n\tld %0, 0(%0)"       \
               : "=&r"(to))
#endif
