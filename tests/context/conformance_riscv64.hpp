// RISC-V 64.
#pragma once

#include "conformance_isa.hpp"

namespace conformance {

// ---- registers by value ---------------------------------------------------------------------------------------------

PIRN_ALWAYS_INLINE void spoil_all_registers() {
  asm volatile(
      ".irp n, 1, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, "
      "31\n\t"
      "li x\\n, 0x5a5a\n\t.endr\n\t"
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
      "28, "
      "29, 30, 31\n\tfmv.d.x f\\n, t0\n\t.endr"
      :
      :
      : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s1", "s2",
        "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", PIRN_CLOBBER_FLOAT);
}

// One bit for each of s0 to s11 (x8, x9, x18 to x27) and fs0 to fs11 (f8, f9, f18 to f27).
word changed_registers(void* argument, void (*function)(void*)) PIRN_ASM_NAME("changed_registers");
PIRN_ASM_FUNCTION("changed_registers",
                  "addi sp, sp, -464\n\tsd ra, 456(sp)\n\t"
                  ".irp n, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27\n\t"
                  "sd x\\n, \\n * 8(sp)\n\tfsd f\\n, 224 + \\n * 8(sp)\n\t.endr\n\t"
                  ".irp n, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27\n\t"
                  "li x\\n, 0x100 + \\n\n\tli t0, 0x200 + \\n\n\tfmv.d.x f\\n, t0\n\t.endr\n\t"
                  "jalr a1\n\t"
                  "li a0, 0\n\t"
                  ".irp n, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27\n\t"
                  "li t0, 0x100 + \\n\n\txor t0, t0, x\\n\n\tsnez t0, t0\n\tslli t0, t0, \\n\n\tor a0, a0, t0\n\t"
                  "li t0, 0x200 + \\n\n\tfmv.x.d t1, f\\n\n\txor t0, t0, t1\n\tsnez t0, t0\n\tslli t0, t0, 32 + \\n\n\t"
                  "or a0, a0, t0\n\t.endr\n\t"
                  ".irp n, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27\n\t"
                  "ld x\\n, \\n * 8(sp)\n\tfld f\\n, 224 + \\n * 8(sp)\n\t.endr\n\t"
                  "ld ra, 456(sp)\n\taddi sp, sp, 464\n\tret");

typedef double vector __attribute__((vector_size(8)));
#define ANY_VECTOR "+m"
inline constexpr int vector_groups = 1;

// ---- flags and control words --------------------------------------------------------------------------------------

PIRN_ALWAYS_INLINE bool direction_flag() { return false; }
PIRN_ALWAYS_INLINE bool x87_empty() { return true; }

struct control_words {
  std::uint64_t rounding = 0;
  static control_words now() {
    control_words words;
    asm volatile("frrm %0" : "=r"(words.rounding));
    return words;
  }
  void set() const { asm volatile("fsrm %0" : : "r"(rounding)); }
  bool operator==(const control_words& other) const { return rounding == other.rounding; }
};

inline constexpr control_words usual_words{0}, words_up{3}, words_down{2};

// ---- the stack ----------------------------------------------------------------------------------------------------

inline constexpr word entry_sp_offset = 0;
PIRN_ALWAYS_INLINE word stack_pointer() {
  word sp;
  asm volatile("mv %0, sp" : "=r"(sp));
  return sp;
}
void note_sp_of_switch_to(word, word) PIRN_ASM_NAME("note_sp_of_switch_to");
PIRN_ASM_FUNCTION("note_sp_of_switch_to", "sd sp, 0(a1)\n\tld t3, 8(a1)\n\tjr t3");
void note_sp_of_transfer(void*, void*, void*, word, word, word, word) PIRN_ASM_NAME("note_sp_of_transfer");
PIRN_ASM_FUNCTION("note_sp_of_transfer", "sd sp, 0(a6)\n\tld t3, 8(a6)\n\tjr t3");

// ---- code -----------------------------------------------------------------------------------------------------------

inline constexpr bool has_landing_pads = false;
inline bool is_landing_pad(const void*) { return true; }
inline bool is_start_frame(word begin) { return begin == reinterpret_cast<word>(&arch::start_frame); }

// ---- signals --------------------------------------------------------------------------------------------------------

inline constexpr bool backtrace_reaches_start = true;
inline constexpr bool tables_hold_everywhere = true;
inline constexpr bool kernel_frames_are_known = true;
inline constexpr bool can_single_step = false;  // a profiling signal stands in for it
inline word interrupted_pc(const void* signal_context) {
  return static_cast<word>(static_cast<const ucontext_t*>(signal_context)->uc_mcontext.__gregs[REG_PC]);
}
inline void keep_stepping(void*, bool) {}
PIRN_ALWAYS_INLINE void begin_stepping() {}

// ---- checks of this instruction set alone ---------------------------------------------------------------------------

// A double in each of the registers that a callee preserves and in as many others, by the constraint for those
// registers.
template <class Shape>
CONFORMANCE_KEEP bool doubles_live(Shape& shape) {
  double a = opaque(1.5), b = opaque(2.5), c = opaque(3.5), d = opaque(4.5), e = opaque(5.5), f = opaque(6.5),
         g = opaque(7.5), h = opaque(8.5), i = opaque(9.5), j = opaque(10.5), k = opaque(11.5), l = opaque(12.5);
  asm volatile(""
               : "+f"(a), "+f"(b), "+f"(c), "+f"(d), "+f"(e), "+f"(f), "+f"(g), "+f"(h), "+f"(i), "+f"(j), "+f"(k),
                 "+f"(l));
  shape.resume();
  asm volatile(""
               : "+f"(a), "+f"(b), "+f"(c), "+f"(d), "+f"(e), "+f"(f), "+f"(g), "+f"(h), "+f"(i), "+f"(j), "+f"(k),
                 "+f"(l));
  return a == 1.5 && b == 2.5 && c == 3.5 && d == 4.5 && e == 5.5 && f == 6.5 && g == 7.5 && h == 8.5 && i == 9.5 &&
         j == 10.5 && k == 11.5 && l == 12.5;
}

template <class Shape>
void check_particulars(Shape& shape) {
  expect(doubles_live(shape), Shape::name, "twelve live floating-point registers");
}

}  // namespace conformance
