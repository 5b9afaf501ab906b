// PowerPC64 LE.
#pragma once

#include "conformance_isa.hpp"

namespace conformance {

// ---- registers by value ---------------------------------------------------------------------------------------------

// The switch must keep r2; check_particulars spoils it.
PIRN_ALWAYS_INLINE void spoil_all_registers() {
  asm volatile(
      ".irp n, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, "
      "30\n\t"
      "li \\n, 0x5a5a\n\t.endr\n\t"
      "mtlr 0\n\tmtctr 0\n\tmtcr 0\n\tmtxer 0\n\t"
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
      "28, "
      "29, 30, 31\n\tmtvsrd \\n, 0\n\tvspltisw \\n, 5\n\t.endr"
      :
      :
      : "r0", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r14", "r15", "r16", "r17", "r18", "r19",
        "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "lr", "ctr", "cr0", "cr1", "cr2",
        "cr3", "cr4", "cr5", "cr6", "cr7", "xer", PIRN_CLOBBER_FLOAT, "memory");
}

// One bit for each of r14 to r31 and f14 to f31 (together), v20 to v31, r2 and cr2 to cr4.
word changed_registers(void* argument, void (*function)(void*)) PIRN_ASM_NAME("changed_registers");
PIRN_ASM_FUNCTION("changed_registers",
                  "mflr 0\n\tstd 0, 16(1)\n\tmfcr 0\n\tstd 0, 8(1)\n\tstdu 1, -544(1)\n\tstd 2, 24(1)\n\t"
                  ".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
                  "std \\n, 32 + (\\n - 14) * 8(1)\n\tstfd \\n, 176 + (\\n - 14) * 8(1)\n\t.endr\n\t"
                  ".irp n, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
                  "li 0, 320 + (\\n - 20) * 16\n\tstvx \\n, 1, 0\n\tvspltisw \\n, \\n - 24\n\t.endr\n\t"
                  "li 0, 0x2a80\n\tmtcrf 0x38, 0\n\t"
                  ".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
                  "li 0, 0x200 + \\n\n\tmtvsrd \\n, 0\n\tli \\n, 0x100 + \\n\n\t.endr\n\t"
                  "mr 12, 4\n\tmtctr 12\n\tbctrl\n\t"
                  "li 3, 0\n\t"
                  "mfcr 0\n\trlwinm 0, 0, 0, 8, 19\n\tli 4, 0x2a80\n\trlwinm 4, 4, 0, 8, 19\n\txor 4, 0, 4\n\t"
                  "cntlzd 4, 4\n\tsrdi 4, 4, 6\n\txori 4, 4, 1\n\tor 3, 3, 4\n\t"
                  "ld 4, 24(1)\n\txor 4, 4, 2\n\tcntlzd 4, 4\n\tsrdi 4, 4, 6\n\txori 4, 4, 1\n\tsldi 4, 4, 1\n\t"
                  "or 3, 3, 4\n\t"
                  ".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
                  "xori 4, \\n, 0x100 + \\n\n\tmfvsrd 5, \\n\n\txori 5, 5, 0x200 + \\n\n\tor 4, 4, 5\n\t"
                  "cntlzd 4, 4\n\tsrdi 4, 4, 6\n\txori 4, 4, 1\n\tsldi 4, 4, \\n\n\tor 3, 3, 4\n\t.endr\n\t"
                  ".irp n, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
                  "vspltisw 0, \\n - 24\n\tvcmpequw. 0, 0, \\n\n\tmfcr 4\n\trlwinm 4, 4, 25, 31, 31\n\txori 4, 4, 1\n\t"
                  "sldi 4, 4, 20 + \\n\n\tor 3, 3, 4\n\t.endr\n\t"
                  ".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
                  "ld \\n, 32 + (\\n - 14) * 8(1)\n\tlfd \\n, 176 + (\\n - 14) * 8(1)\n\t.endr\n\t"
                  ".irp n, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
                  "li 0, 320 + (\\n - 20) * 16\n\tlvx \\n, 1, 0\n\t.endr\n\t"
                  "ld 2, 24(1)\n\taddi 1, 1, 544\n\tld 0, 8(1)\n\tmtcrf 0x38, 0\n\tld 0, 16(1)\n\tmtlr 0\n\tblr");

typedef double vector __attribute__((vector_size(16)));
#define ANY_VECTOR "+wa"
inline constexpr int vector_groups = 7;

// ---- flags and control words --------------------------------------------------------------------------------------

PIRN_ALWAYS_INLINE bool direction_flag() { return false; }
PIRN_ALWAYS_INLINE bool x87_empty() { return true; }

struct control_words {
  std::uint64_t rounding = 0;
  static control_words now() {
    double bits;
    asm volatile("mffs %0" : "=f"(bits));
    return {__builtin_bit_cast(std::uint64_t, bits) & 3};
  }
  void set() const {
    const double bits = __builtin_bit_cast(double, rounding);
    asm volatile("mtfsf 1, %0" : : "f"(bits));
  }
  bool operator==(const control_words& other) const { return rounding == other.rounding; }
};

inline constexpr control_words usual_words{0}, words_up{2}, words_down{3};

// ---- the stack ----------------------------------------------------------------------------------------------------

inline constexpr word entry_sp_offset = 0;
PIRN_ALWAYS_INLINE word stack_pointer() {
  word sp;
  asm volatile("mr %0, 1" : "=r"(sp));
  return sp;
}
void note_sp_of_switch_to(word, word) PIRN_ASM_NAME("note_sp_of_switch_to");
PIRN_ASM_FUNCTION("note_sp_of_switch_to", "std 1, 0(4)\n\tld 12, 8(4)\n\tmtctr 12\n\tbctr");
void note_sp_of_transfer(void*, void*, void*, word, word, word, word) PIRN_ASM_NAME("note_sp_of_transfer");
PIRN_ASM_FUNCTION("note_sp_of_transfer", "std 1, 0(9)\n\tld 12, 8(9)\n\tmtctr 12\n\tbctr");

// ---- code -----------------------------------------------------------------------------------------------------------

inline constexpr bool has_landing_pads = false;
inline bool is_landing_pad(const void*) { return true; }
inline bool is_start_frame(word begin) { return begin == reinterpret_cast<word>(&arch::start_frame); }

// ---- signals --------------------------------------------------------------------------------------------------------

inline constexpr bool backtrace_reaches_start = false;  // it ends in the C library, below
inline constexpr bool tables_hold_everywhere = true;
inline constexpr bool kernel_frames_are_known = false;  // qemu-user's are not those of a kernel
inline constexpr bool can_single_step = false;          // a profiling signal stands in for it
inline word interrupted_pc(const void* signal_context) {
  return static_cast<word>(static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gp_regs[32]);
}
inline void keep_stepping(void*, bool) {}
PIRN_ALWAYS_INLINE void begin_stepping() {}

// ---- checks of this instruction set alone ---------------------------------------------------------------------------

inline bool toc_kept_by_context;
inline int frames_in_chain;

// The TOC of another module, for all that the switch can tell, and the back chain, which ends at the root frame.
template <class Shape>
void yield_with_another_toc(Shape& shape) {
  frames_in_chain = 0;
  for (auto* frame = *static_cast<void***>(__builtin_frame_address(0)); frame != nullptr && frames_in_chain < 100;
       frame = static_cast<void**>(*frame)) {
    ++frames_in_chain;
  }
  word own, found;
#if defined(PIRN_KEEP_FP_WORDS)  // where the switch itself may reach for constants through r2: no spoiling
  asm volatile("mr %0, 2" : "=r"(own));
#else
  asm volatile("mr %0, 2\n\tli 2, 0x5a5a" : "=r"(own));
#endif
  word expected;
  asm volatile("mr %0, 2" : "=r"(expected));
  shape.yield();
  asm volatile("mr %0, 2\n\tmr 2, %1" : "=&r"(found) : "r"(own));
  toc_kept_by_context = found == expected;
}

template <class Shape>
CONFORMANCE_KEEP word toc_after_resume(Shape& shape) {
  shape.resume();
  word toc;
  asm volatile("mr %0, 2" : "=r"(toc));
  return toc;
}

template <class Shape>
void check_particulars(Shape&) {
  static Shape shape;
  word toc;
  asm volatile("mr %0, 2" : "=r"(toc));
  shape.start(&yield_with_another_toc<Shape>);
  const word toc_while_suspended = toc_after_resume(shape);
  expect(toc_while_suspended == toc && toc_kept_by_context, Shape::name, "each side keeps its TOC pointer");
  expect(frames_in_chain >= 1 && frames_in_chain < 10, Shape::name, "the back chain ends at the root frame");
}

}  // namespace conformance
