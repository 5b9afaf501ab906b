// Prints in which registers a PIRN_NONE function of this compiler takes its arguments and which registers it preserves.
// Fails if the switches assume other ones. convention.py builds it by each compiler.
#include <cstdio>
#include <string>

#include "pirn/context/arch.hpp"

#if !defined(PIRN_HAS_NONE)
int main() { std::puts("has none"); }
#else

using pirn::arch::word;

// A probe of a register is a PIRN_NONE function that overwrites it and names it as clobbered, so that the compiler
// restores it if the convention preserves it. `pirn_call_probe` puts 1000 + number into each register, calls
// `pirn_probed`, and stores all registers to `pirn_found`. Hidden names: the assembly addresses them by pc.
extern "C" {
__attribute__((visibility("hidden"))) void (*pirn_probed)();
__attribute__((visibility("hidden"))) word pirn_found[32];
__attribute__((visibility("hidden"))) void pirn_call_probe() noexcept;
// Stores the registers in which the switches deliver the arguments of an entry function.
__attribute__((visibility("hidden"))) PIRN_NONE void pirn_take_arguments(void*, void*, void*, word, word, word,
                                                                         word) noexcept;
}

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define FUNCTION(name, text)                                                                                          \
  ".text\n.p2align 4\n.globl " name "\n.hidden " name "\n.type " name ", %function\n" name ":\n\t" text ".size " name \
  ", . - " name "\n"

#if defined(__x86_64__)
#define REGISTERS(f)                                                                                           \
  f(0, rax) f(1, rbx) f(2, rcx) f(3, rdx) f(4, rsi) f(5, rdi) f(6, r8) f(7, r9) f(8, r10) f(9, r11) f(10, r12) \
      f(11, r13) f(12, r14) f(13, r15) f(14, rbp)
#define OVERWRITE(name) "movq $1, %%" name
#define SET(number, name) "movq $1000+" #number ", %" #name "\n\t"
#define STORE_AS(number, name) "movq %" name ", pirn_found+8*" #number "(%rip)\n\t"
#define STORE(number, name) STORE_AS(number, #name)
#define RETURN "ret\n\t"
constexpr const char* preserved_by_none = " rbp";
// The callq finds rsp at a multiple of 16.
asm(FUNCTION(
    "pirn_call_probe",
    "pushq %rbx\n\tpushq %rbp\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\tsubq $8, %rsp\n\t" REGISTERS(
        SET) "callq *pirn_probed(%rip)\n\t" REGISTERS(STORE) "addq $8, %rsp\n\tpopq %r15\n\tpopq %r14\n\tpopq "
                                                             "%r13\n\tpopq %r12\n\tpopq %rbp\n\tpopq %rbx\n\tret\n\t"));
#else
// x16 to x18 are the linker's and the platform's, x29 is the frame pointer.
#define REGISTERS(f)                                                                                                \
  f(0, x0) f(1, x1) f(2, x2) f(3, x3) f(4, x4) f(5, x5) f(6, x6) f(7, x7) f(8, x8) f(9, x9) f(10, x10) f(11, x11)   \
      f(12, x12) f(13, x13) f(14, x14) f(15, x15) f(19, x19) f(20, x20) f(21, x21) f(22, x22) f(23, x23) f(24, x24) \
          f(25, x25) f(26, x26) f(27, x27) f(28, x28)
#define OVERWRITE(name) "mov " name ", #1"
#define SET(number, name) "mov " #name ", #1000+" #number "\n\t"
#define STORE_AS(number, name) \
  "adrp x16, pirn_found\n\tadd x16, x16, :lo12:pirn_found\n\tstr " name ", [x16, #8*" #number "]\n\t"
#define STORE(number, name) STORE_AS(number, #name)
#define RETURN "ret\n\t"
constexpr const char* preserved_by_none = "";
asm(FUNCTION("pirn_call_probe",
             "stp x29, x30, [sp, #-96]!\n\tstp x19, x20, [sp, #16]\n\tstp x21, x22, [sp, #32]\n\t"
             "stp x23, x24, [sp, #48]\n\tstp x25, x26, [sp, #64]\n\tstp x27, x28, [sp, #80]\n\t"
             "adrp x16, pirn_probed\n\tldr x16, [x16, :lo12:pirn_probed]\n\t" REGISTERS(SET) "blr x16\n\t" REGISTERS(
                 STORE) "ldp x19, x20, [sp, #16]\n\tldp x21, x22, [sp, #32]\n\tldp x23, x24, [sp, #48]\n\t"
                        "ldp x25, x26, [sp, #64]\n\tldp x27, x28, [sp, #80]\n\tldp x29, x30, [sp], #96\n\tret\n\t"));
#endif
asm(FUNCTION("pirn_take_arguments",
             STORE_AS(0, PIRN_PC) STORE_AS(1, PIRN_SP) STORE_AS(2, PIRN_FP) STORE_AS(3, PIRN_VALUE0)
                 STORE_AS(4, PIRN_VALUE1) STORE_AS(5, PIRN_VALUE2) STORE_AS(6, PIRN_VALUE3) RETURN));

namespace {
constexpr const char* names[] = {PIRN_PC, PIRN_SP, PIRN_FP, PIRN_VALUE0, PIRN_VALUE1, PIRN_VALUE2, PIRN_VALUE3};

#define PROBE(number, name) \
  PIRN_NONE PIRN_NOINLINE void probe_##name() { asm volatile(OVERWRITE(#name) : : : #name); }
REGISTERS(PROBE)

std::string preserved() {
  std::string kept;
#define ASK(number, name)                                    \
  pirn_probed = reinterpret_cast<void (*)()>(&probe_##name); \
  pirn_call_probe();                                         \
  if (pirn_found[number] == 1000 + number) kept += " " #name;
  REGISTERS(ASK)
  return kept;
}

void* pointer(word value) { return reinterpret_cast<void*>(value); }
}  // namespace

int main() {
  int failures = 0;
  pirn_take_arguments(pointer(1), pointer(2), pointer(3), 4, 5, 6, 7);
  for (word at = 0; at < 7; ++at) {
    if (pirn_found[at] != at + 1) {
      ++failures;
      std::printf("FAILED argument %d of a PIRN_NONE function is not in %s\n", static_cast<int>(at + 1), names[at]);
    }
  }
  const std::string kept = preserved();
  std::printf("%s: arguments", TEXT(PIRN_ABI_CONVENTION));
  for (const char* name : names) std::printf(" %s", name);
  std::printf("; preserves%s beside sp and fp\n", kept.empty() ? " nothing" : kept.c_str());
  // The name of another compiler's convention promises no set, since its objects link with none of clang's.
  if (std::string(TEXT(PIRN_ABI_CONVENTION)) == "none" && kept != preserved_by_none) {
    ++failures;
    std::printf("FAILED objects named `none` preserve%s, this compiler's%s\n", preserved_by_none, kept.c_str());
  }
  return failures != 0;
}
#endif
