// AArch64.
#pragma once

#include "conformance_isa.hpp"

namespace conformance {

// ---- registers by value ---------------------------------------------------------------------------------------------

PIRN_ALWAYS_INLINE void spoil_all_registers() {
  asm volatile(
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
      "28, "
      "30\n\tmov x\\n, #0x5a5a\n\t.endr\n\t"
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
      "28, "
      "29, 30, 31\n\tmovi v\\n\\().16b, #0x5a\n\t.endr"
      :
      :
      : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", PIRN_CLOBBER_FLOAT,
        "memory", "cc");
}

// One bit for each of x19 to x29 and d8 to d15.
word changed_registers(void* argument, void (*function)(void*)) PIRN_ASM_NAME("changed_registers");
PIRN_ASM_FUNCTION("changed_registers",
                  "hint #34\n\t"
                  "stp x29, x30, [sp, #-176]!\n\t"
                  "stp x19, x20, [sp, #16]\n\tstp x21, x22, [sp, #32]\n\tstp x23, x24, [sp, #48]\n\t"
                  "stp x25, x26, [sp, #64]\n\tstp x27, x28, [sp, #80]\n\t"
                  "stp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n\tstp d12, d13, [sp, #128]\n\t"
                  "stp d14, d15, [sp, #144]\n\t"
                  ".irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29\n\tmov x\\n, #0x1000 + \\n\n\t.endr\n\t"
                  ".irp n, 8, 9, 10, 11, 12, 13, 14, 15\n\tmov x9, #0x2000 + \\n\n\tfmov d\\n, x9\n\t.endr\n\t"
                  "blr x1\n\t"
                  "mov x0, #0\n\t"
                  ".irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29\n\t"
                  "mov x9, #0x1000 + \\n\n\tcmp x9, x\\n\n\tcset x9, ne\n\torr x0, x0, x9, lsl #(\\n - 19)\n\t.endr\n\t"
                  ".irp n, 8, 9, 10, 11, 12, 13, 14, 15\n\t"
                  "mov x9, #0x2000 + \\n\n\tfmov x10, d\\n\n\tcmp x9, x10\n\tcset x9, ne\n\t"
                  "orr x0, x0, x9, lsl #(\\n + 8)\n\t.endr\n\t"
                  "ldp x19, x20, [sp, #16]\n\tldp x21, x22, [sp, #32]\n\tldp x23, x24, [sp, #48]\n\t"
                  "ldp x25, x26, [sp, #64]\n\tldp x27, x28, [sp, #80]\n\t"
                  "ldp d8, d9, [sp, #96]\n\tldp d10, d11, [sp, #112]\n\tldp d12, d13, [sp, #128]\n\t"
                  "ldp d14, d15, [sp, #144]\n\t"
                  "ldp x29, x30, [sp], #176\n\tret");

typedef double vector __attribute__((vector_size(16)));
#define ANY_VECTOR "+w"
inline constexpr int vector_groups = 4;

// ---- flags and control words --------------------------------------------------------------------------------------

PIRN_ALWAYS_INLINE bool direction_flag() { return false; }
PIRN_ALWAYS_INLINE bool x87_empty() { return true; }

struct control_words {
  std::uint64_t fpcr = 0;
  static control_words now() {
    control_words words;
    asm volatile("mrs %0, fpcr" : "=r"(words.fpcr));
    return words;
  }
  void set() const { asm volatile("msr fpcr, %0" : : "r"(fpcr)); }
  bool operator==(const control_words& other) const { return fpcr == other.fpcr; }
};

inline constexpr control_words usual_words{0}, words_up{1u << 22}, words_down{2u << 22};

// ---- the stack ----------------------------------------------------------------------------------------------------

inline constexpr word entry_sp_offset = 0;
PIRN_ALWAYS_INLINE word stack_pointer() {
  word sp;
  asm volatile("mov %0, sp" : "=r"(sp));
  return sp;
}
void note_sp_of_switch_to(word, word) PIRN_ASM_NAME("note_sp_of_switch_to");
PIRN_ASM_FUNCTION("note_sp_of_switch_to", "hint #34\n\tmov x9, sp\n\tstr x9, [x1]\n\tldr x16, [x1, #8]\n\tbr x16");
PIRN_NONE void note_sp_of_transfer(void*, void*, void*, word, word, word, word) PIRN_ASM_NAME("note_sp_of_transfer");
PIRN_ASM_FUNCTION("note_sp_of_transfer",
                  "hint #34\n\tmov x9, sp\n\tstr x9, [" PIRN_VALUE3 "]\n\tldr x16, [" PIRN_VALUE3 ", #8]\n\tbr x16");

// ---- code -----------------------------------------------------------------------------------------------------------

#if defined(__ARM_FEATURE_BTI_DEFAULT)
inline constexpr bool has_landing_pads = true;
#else
inline constexpr bool has_landing_pads = false;
#endif
inline bool is_landing_pad(const void* code) {
  const unsigned instruction = *static_cast<const unsigned*>(code);
  return instruction == 0xd503249f || instruction == 0xd50324df;  // bti j, bti jc
}
inline bool is_start_frame(word begin) { return begin == reinterpret_cast<word>(&arch::start_frame); }

// ---- signals --------------------------------------------------------------------------------------------------------

inline constexpr bool backtrace_reaches_start = true;
inline constexpr bool tables_hold_everywhere = true;
inline constexpr bool kernel_frames_are_known = true;
inline constexpr bool can_single_step = false;  // a profiling signal stands in for it
inline word interrupted_pc(const void* signal_context) {
  return static_cast<word>(static_cast<const ucontext_t*>(signal_context)->uc_mcontext.pc);
}
inline void keep_stepping(void*, bool) {}
PIRN_ALWAYS_INLINE void begin_stepping() {}

// ---- checks of this instruction set alone ---------------------------------------------------------------------------

template <class Shape>
void check_particulars(Shape&) {}

}  // namespace conformance
