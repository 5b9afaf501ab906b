// RISC-V 64, LP64 and LP64D on Linux. The contract and the stack pictures are in arch.hpp.
//
// Facts that shape the code (docs/abi.md names the test of each):
//   * No compiler has preserve_none here: `transfer` uses the registers of the ordinary convention, a0 to a6, in which
//     a fresh context's entry function finds its arguments.
//   * A frame with an over-aligned local and alloca is addressed through s1, which clang keeps using after an asm that
//     clobbers it. So s1 is not named: a context that leaves pushes its own and loads that of the resumed one, before
//     sp changes, while no signal handler can have run on that stack. Only the switch uses memory below sp: there is no
//     red zone.
//   * s0 is the frame pointer, which cannot be a clobber: the asm saves it. gp and tp are the program's and the
//     thread's.
//   * A jump through ra or t0 is taken for a return by the branch predictor: the exchange goes through t3.
//   * A return address is looked up in the unwind tables as pc - 1, so an instruction that has the function's ordinary
//     tables stands before each resume label, and prepare never points pc at a function's first byte.
//   * gcc writes unwind tables only for functions that may throw, without -fasynchronous-unwind-tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch/shared/types.hpp"
#include "pirn/context/arch/text/riscv64.h"  // IWYU pragma: export

#define PIRN_PC "a0"
#define PIRN_SP "a1"
#define PIRN_FP "a2"
#define PIRN_VALUE0 "a3"
#define PIRN_VALUE1 "a4"
#define PIRN_VALUE2 "a5"
#define PIRN_VALUE3 "a6"
#define PIRN_TO_PC "t3"
#define PIRN_TO_SP "t4"
#define PIRN_TO_FP "t5"
#define PIRN_SYMBOL "i"

#define PIRN_TRANSFER_CLOBBERS PIRN_CLOBBER_REST

// clang-format off
#define PIRN_TRANSFER_TEXT "mv t3, a0\n\tmv t4, a1\n\tmv t5, a2\n\t"
#define PIRN_LEAVE_TEXT(tag)                            \
  "lla a0, " PIRN_RESUME_ADDRESS "\n\t"                 \
  "mv a1, sp\n\t"                                       \
  "mv a2, s0\n\t"                                       \
  tag
#define PIRN_TAG_TEXT "ori a1, a1, 1\n\t"
// Into a fresh stack: its sp is in t4, an address in the root frame in t3. At the jump sp is t4, ra is t3, s0 is 0, and
// the entry function's arguments are in place; a fresh context takes no s1 over. The tables describe the root frame as
// the caller:
//   0c 1d 00          DW_CFA_def_cfa, register 29, offset 0    CFA = t4
//   .cfi_register     return address in t3
#define PIRN_INTO_TEXT                                  \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IS("29", "0"))                      \
  PIRN_CFI(".cfi_register ra, t3")                      \
  "addi sp, sp, -16\n\t"                                \
  "sd s1, 0(sp)\n\t"                                    \
  "mv ra, t3\n\t"                                       \
  "mv s0, zero\n\t"                                     \
  "mv sp, t4\n\t"                                       \
  "tail %[landing]\n\t"                                 \
  PIRN_CFI(".cfi_restore_state")
// clang-format on

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

inline constexpr std::size_t red_zone = 16;
inline constexpr std::size_t switch_zone = red_zone;
inline constexpr std::size_t root_size = 0;

/// The frame that every entry function appears to have been called from. Its unwind table says that there is no
/// caller, which ends a backtrace; running into it (an entry function returned) traps.
void root_frame() PIRN_ASM_NAME("root_frame");
PIRN_ASM_FUNCTION("root_frame",
                  ".option push\n\t.option norvc\n\t.cfi_undefined ra\n\tnop\n\tnop\n\tnop\n\tunimp\n\t.option pop");

/// Where a fresh context begins (at + 8): it jumps to the entry function whose address lies on top of the stack, and
/// leaves all argument registers as the switch delivered them.
void start_frame() PIRN_ASM_NAME("start_frame");
// At the beginning sp points to the address of the entry function and, above it, the one in root_frame. At the jump t3
// and ra hold these, and sp is above them. All other registers are as the switch delivered them.
PIRN_ASM_FUNCTION("start_frame",
                  ".option push\n\t.option norvc\n\t.cfi_undefined ra\n\tnop\n\tnop\n\t"
                  "ld t3, 0(sp)\n\tld ra, 8(sp)\n\taddi sp, sp, 16\n\tjr t3\n\t.option pop");

namespace detail {
PIRN_ALWAYS_INLINE void* write_root_frame(void* top) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<word>(top) & ~word{15});
}
PIRN_ALWAYS_INLINE context prepare_at(void* top, void* entry, void (*start)()) noexcept {
  auto* slot = static_cast<void**>(write_root_frame(top));
  *--slot = entry_plus_8(&root_frame);
  *--slot = entry;
  return {entry_plus_8(start), slot, nullptr};
}
inline constexpr auto transfer_start = &start_frame;

#if defined(__riscv_flen)
/// The rounding mode of the running context, put back when it is resumed. The rest of fcsr are sticky flags, which are
/// no control word; this ISA has no floating-point traps.
class kept_fp_words {
 public:
  PIRN_ALWAYS_INLINE kept_fp_words() noexcept { asm volatile("frrm %0" : "=r"(rounding_)); }
  PIRN_ALWAYS_INLINE void restore() const noexcept { asm volatile("fsrm %0" : : "r"(rounding_)); }

 private:
  std::uint64_t rounding_;
};
#else
using kept_fp_words = shared_fp_words;
#endif
using fp_words = std::conditional_t<keeps_fp_words, kept_fp_words, shared_fp_words>;
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/transfer_into.hpp"  // IWYU pragma: export

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// Whether this thread runs under a hardware shadow stack: code built for one cannot run here.
PIRN_ALWAYS_INLINE bool shadow_stack_active() noexcept {
#if defined(__riscv_zicfiss)
  word pointer = 0;
  asm volatile("ssrdp %0" : "=r"(pointer));  // zero where the feature is off
  return pointer != 0;
#else
  return false;
#endif
}

namespace detail {
/// Calls `function(first, second)` with an unwind table by which the caller is `suspended`.
word walk_as_if_called_by(const context* suspended, word first, word second, word (*function)(word, word))
    PIRN_ASM_NAME("walk_as_if_called_by");
// At the call s1 holds `suspended`, a0 and a1 the words, a3 the function. The tables of the call:
//   0f 03 79 08 06   DW_CFA_def_cfa_expression, 3 bytes: DW_OP_breg9 (s1) + 8, DW_OP_deref    CFA = *(s1 + 8), its sp
//   10 01 02 79 00   DW_CFA_expression, register 1, 2 bytes: DW_OP_breg9 (s1) + 0             return address at s1 + 0
//   10 08 02 79 10   DW_CFA_expression, register 8, 2 bytes: DW_OP_breg9 (s1) + 16            s0 at s1 + 16
//   .cfi_offset      its s1 at CFA - 16, below its sp
PIRN_ASM_FUNCTION("walk_as_if_called_by",
                  "addi sp, sp, -32\n\t"
                  ".cfi_def_cfa_offset 32\n\t"
                  "sd ra, 24(sp)\n\tsd s0, 16(sp)\n\tsd s1, 8(sp)\n\t"
                  ".cfi_offset ra, -8\n\t.cfi_offset s0, -16\n\t.cfi_offset s1, -24\n\t"
                  "mv s1, a0\n\tmv a0, a1\n\tmv a1, a2\n\t"
                  ".cfi_remember_state\n\t"
                  PIRN_CFA_IN("9", "8") "\n\t"
                  PIRN_SAVED_IN("1", "9", "0") "\n\t"
                  PIRN_SAVED_IN("8", "9", "16") "\n\t"
                  ".cfi_offset s1, -16\n\t"
                  "jalr a3\n\t"
                  ".cfi_restore_state\n\t"
                  "ld ra, 24(sp)\n\tld s0, 16(sp)\n\tld s1, 8(sp)\n\t"
                  ".cfi_restore ra\n\t.cfi_restore s0\n\t.cfi_restore s1\n\t"
                  "addi sp, sp, 32\n\t"
                  ".cfi_def_cfa_offset 0\n\t"
                  "ret");
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#define PIRN_ENTRY "t1"
#define PIRN_ROOT "t3"
// clang-format off
// enter_last: t4 holds the sp. At the jump sp is t4, ra is t3, and s0 is 0. The tables describe the root frame as the
// caller:
//   0c 1d 00          DW_CFA_def_cfa, register 29, offset 0    CFA = t4
//   .cfi_register     return address in t3
#define PIRN_ENTER_TEXT                                 \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IS("29", "0"))                      \
  PIRN_CFI(".cfi_register ra, t3")                      \
  "mv ra, t3\n\t"                                       \
  "mv s0, zero\n\t"                                     \
  "mv sp, t4\n\t"                                       \
  "jr t1\n\t"                                           \
  PIRN_CFI(".cfi_restore_state")
// clang-format on

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch::detail {
/// The sp at which an entry function begins.
PIRN_ALWAYS_INLINE void* initial_sp(void* top) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<word>(top) & ~word{15});
}
}  // namespace arch::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/enter_last.hpp"  // IWYU pragma: export
