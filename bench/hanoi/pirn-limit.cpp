// An experiment: the yield object as a pair of words in registers through the recursion, pc and sp of the consumer, as
// Li and others propose in "Stackful Coroutine Made Fast". Each call of the recursion takes the pair and returns that
// of the consumer's latest resumption. No tests for an end or a cancelled body, no unwind tables and no exceptions:
// what a library could gain at most.
#include <utility>

#include "hanoi.hpp"
#include "pirn/context/arch.hpp"

#if !defined(__x86_64__) || !defined(PIRN_HAS_NONE)
#error "pirn-limit: written for x86-64 and a compiler with preserve_none"
#endif

namespace {

/// A side that is suspended. Its rbp lies in its own frame.
struct pair {
  void* pc;
  void* sp;
};

/// Suspends the caller and resumes `to` with a word; returns the side that resumes the caller, and the word that it
/// gives.
PIRN_ALWAYS_INLINE pair change(pair to, std::uint64_t& word) {
  register void* pc asm("r12") = to.pc;
  register void* sp asm("r13") = to.sp;
  register std::uint64_t value asm("rdi") = word;
  std::uint64_t fp;  // found from sp, as these functions have no frame pointer
  asm volatile(
      "movq %%rbp, %[fp]\n\t"
      "movq %%r12, %%rax\n\t"
      "movq %%r13, %%rdx\n\t"
      "leaq 1f(%%rip), %%r12\n\t"
      "movq %%rsp, %%r13\n\t"
      "movq %%rdx, %%rsp\n\t"
      "jmpq *%%rax\n\t"
      ".p2align 4\n"
      "1:\n\t"
      "movq %[fp], %%rbp\n\t"
      : "+r"(pc), "+r"(sp), "+r"(value), [fp] "=m"(fp)
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r14", "r15", PIRN_CLOBBER_FLOAT, "memory", "cc");
  word = value;
  return {pc, sp};
}

PIRN_NONE pair produce(pair consumer, unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    return consumer;
  }
  consumer = produce(consumer, disks - 1, from, spare, to);
  std::uint64_t word = bench::move(disks, from, to);
  consumer = change(consumer, word);
  return produce(consumer, disks - 1, spare, to, from);
}

constexpr std::uint64_t end = ~std::uint64_t{0};
unsigned disks_now = 0;

extern "C" [[noreturn, gnu::used, gnu::noinline]] void bench_pair_body(void* pc, void* sp) {
  pair consumer = produce({pc, sp}, disks_now, 0, 1, 2);
  std::uint64_t word = end;
  change(consumer, word);
  __builtin_unreachable();
}

/// Where a body begins: the pair of its consumer is in r12 and r13.
[[gnu::naked]] void begin() { asm("movq %r12, %rdi\n\tmovq %r13, %rsi\n\txorl %ebp, %ebp\n\tcall bench_pair_body"); }

[[gnu::noinline]] bench::digest solve(unsigned disks) {
  alignas(64) static char stack[65536];
  disks_now = disks;
  auto** top = reinterpret_cast<void**>(stack + sizeof stack) - 2;
  bench::digest moves;
  pair producer{reinterpret_cast<void*>(&begin), top};
  std::uint64_t word = 0;
  for (;;) {
    producer = change(producer, word);
    if (word == end) {
      return moves;
    }
    moves.take(word);
  }
}

}  // namespace

int main() {
  bench::hanoi_rows("pirn-limit", solve, "no library: the yield object in two registers, without tests for an end");
}
