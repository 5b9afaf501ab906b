// PowerPC64, little endian, ELFv2. The contract and the stack pictures are in arch.hpp.
//
// Facts that shape the code (docs/abi.md names the test of each):
//   * No compiler has preserve_none here: `transfer` uses the registers of the ordinary convention, r3 to r9, in which
//     a fresh context's entry function finds its arguments.
//   * clang addresses an over-aligned local in a frame with alloca through r30, and keeps using it after an asm that
//     clobbers it. r2 is the TOC pointer, another one in each shared library, and no compiler lets an asm clobber it.
//     So neither is named: a context that leaves saves its own below the red zone and loads those of the resumed one,
//     before r1 changes, while no signal handler can have run on that stack.
//   * The 288 bytes below r1 belong to the interrupted function. The word at r1 points to the caller's frame at every
//     instruction: r1 moves by stdu.
//   * r31 is the frame pointer, which cannot be a clobber: the asm saves it. r13 is the thread's.
//   * A function entered through a pointer finds its own address in r12 and derives r2 from it; one that is jumped to
//     by name in the same module finds r2 already set.
//   * A callee saves its return address and r2 in its caller's frame: the root frame has room for them.
//   * There is no address of a label without a branch: bcl 20,31 is the one that the return predictor ignores.
//   * A return address is looked up in the unwind tables as pc - 1, so an instruction that has the function's ordinary
//     tables stands before each resume label, and prepare never points pc at a function's first byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch/shared/types.hpp"
#include "pirn/context/arch/text/ppc64le.h"  // IWYU pragma: export

#define PIRN_PC "r3"
#define PIRN_SP "r4"
#define PIRN_FP "r5"
#define PIRN_VALUE0 "r6"
#define PIRN_VALUE1 "r7"
#define PIRN_VALUE2 "r8"
#define PIRN_VALUE3 "r9"
#define PIRN_TO_PC "r12"
#define PIRN_TO_SP "r10"
#define PIRN_TO_FP "r11"
#define PIRN_SYMBOL "i"

#define PIRN_TRANSFER_CLOBBERS PIRN_CLOBBER_REST

// clang-format off
#define PIRN_TRANSFER_TEXT "mr 12, 3\n\tmr 10, 4\n\tmr 11, 5\n\t"
#define PIRN_LEAVE_TEXT(tag)                            \
  PIRN_LABEL_ADDRESS("3")                               \
  "mr 4, 1\n\t"                                         \
  "mr 5, 31\n\t"                                        \
  tag
#define PIRN_TAG_TEXT "ori 4, 4, 1\n\t"
// Into a fresh stack: its sp is in r10, an address in the root frame in r12. At the jump r1 is r10, lr is r12, r31 is 0,
// and the entry function's arguments are in place. A fresh context takes r2 over, which is right for a function of the
// same module. The tables describe the root frame as the caller:
//   0c 0a 00          DW_CFA_def_cfa, register 10, offset 0    CFA = r10
//   .cfi_register     return address (register 65) in r12
#define PIRN_INTO_TEXT                                  \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IS("10", "0"))                      \
  PIRN_CFI(".cfi_register 65, 12")                      \
  PIRN_SAVE_TEXT                                        \
  "mtlr 12\n\t"                                         \
  "li 31, 0\n\t"                                        \
  "mr 1, 10\n\t"                                        \
  "b %[landing]\n\t"                                    \
  PIRN_CFI(".cfi_restore_state")
// clang-format on

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

inline constexpr std::size_t red_zone = 320;  // the ABI's 288, r30 and r2
inline constexpr std::size_t switch_zone = red_zone;
inline constexpr std::size_t root_size = 0;

/// The frame that every entry function appears to have been called from. Its unwind table says that there is no
/// caller, which ends a backtrace; running into it (an entry function returned) traps.
void root_frame() PIRN_ASM_NAME("root_frame");
PIRN_ASM_FUNCTION("root_frame", ".cfi_undefined 65\n\tnop\n\tnop\n\tnop\n\t.long 0");

/// Where a fresh context begins (at + 8): it jumps to the entry function whose address lies on the stack, and leaves
/// all argument registers as the switch delivered them.
void start_frame() PIRN_ASM_NAME("start_frame");
// At the beginning the words at r1 + 16 and r1 + 24 are the address in root_frame and that of the entry function. At
// the jump lr and ctr hold these, r12 holds the latter too, and r1 is the root frame. All argument registers are as the
// switch delivered them.
PIRN_ASM_FUNCTION("start_frame",
                  ".cfi_undefined 65\n\tnop\n\tnop\n\t"
                  "ld 0, 16(1)\n\tmtlr 0\n\tld 12, 24(1)\n\tmtctr 12\n\taddi 1, 1, 32\n\tbctr");

namespace detail {
/// The root frame: a back chain that ends here, and room for the words that an entry function saves in its caller's
/// frame.
PIRN_ALWAYS_INLINE void* write_root_frame(void* top) noexcept {
  auto* slot = reinterpret_cast<void**>(reinterpret_cast<word>(top) & ~word{15}) - 4;
  slot[0] = nullptr;
  slot[2] = nullptr;
  return slot;
}
PIRN_ALWAYS_INLINE context prepare_at(void* top, void* entry, void (*start)()) noexcept {
  auto* const root = static_cast<void**>(write_root_frame(top));
  auto* const slot = root - 4;
  slot[0] = root;
  slot[2] = entry_plus_8(&root_frame);
  slot[3] = entry;
  return {entry_plus_8(start), slot, nullptr};
}
inline constexpr auto transfer_start = &start_frame;

/// The rounding mode and the trap enables of the running context, put back when it is resumed. The rest of fpscr are
/// sticky flags, which are no control word.
class kept_fp_words {
 public:
  PIRN_ALWAYS_INLINE kept_fp_words() noexcept { asm volatile("mffs %0" : "=f"(fpscr_)); }
  PIRN_ALWAYS_INLINE void restore() const noexcept { asm volatile("mtfsf 3, %0" : : "f"(fpscr_)); }

 private:
  double fpscr_;
};
using fp_words = std::conditional_t<keeps_fp_words, kept_fp_words, shared_fp_words>;
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/transfer_into.hpp"  // IWYU pragma: export

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// Whether this thread runs under a hardware shadow stack, which this ISA does not have.
PIRN_ALWAYS_INLINE bool shadow_stack_active() noexcept { return false; }

namespace detail {
/// Calls `function(first, second)` with an unwind table by which the caller is `suspended`.
word walk_as_if_called_by(const context* suspended, word first, word second, word (*function)(word, word))
    PIRN_ASM_NAME("walk_as_if_called_by");
// At the call r30 holds `suspended`, r3 and r4 the words, r12 and ctr the function. The tables of the call:
//   0f 03 8e 08 06   DW_CFA_def_cfa_expression, 3 bytes: DW_OP_breg30 + 8, DW_OP_deref    CFA = *(r30 + 8), its sp
//   10 41 02 8e 00   DW_CFA_expression, register 65, 2 bytes: DW_OP_breg30 + 0            return address at r30 + 0
//   10 1f 02 8e 10   DW_CFA_expression, register 31, 2 bytes: DW_OP_breg30 + 16           r31 at r30 + 16
//   .cfi_offset      its r30 at CFA - 296, below its red zone
PIRN_ASM_FUNCTION("walk_as_if_called_by",
                  "mflr 0\n\tstd 0, 16(1)\n\t"
                  ".cfi_offset 65, 16\n\t"
                  "stdu 1, -48(1)\n\t"
                  ".cfi_def_cfa_offset 48\n\t"
                  "std 30, 40(1)\n\t"
                  ".cfi_offset 30, -8\n\t"
                  "std 2, 24(1)\n\t"
                  "mr 30, 3\n\tmr 3, 4\n\tmr 4, 5\n\tmr 12, 6\n\tmtctr 12\n\t"
                  ".cfi_remember_state\n\t"
                  PIRN_CFA_IN("30", "8") "\n\t"
                  PIRN_SAVED_IN("65", "30", "0") "\n\t"
                  PIRN_SAVED_IN("31", "30", "16") "\n\t"
                  ".cfi_offset 30, -296\n\t"
                  "bctrl\n\t"
                  ".cfi_restore_state\n\t"
                  "ld 2, 24(1)\n\t"
                  "ld 30, 40(1)\n\t"
                  ".cfi_restore 30\n\t"
                  "addi 1, 1, 48\n\t"
                  ".cfi_def_cfa_offset 0\n\t"
                  "ld 0, 16(1)\n\tmtlr 0\n\t"
                  ".cfi_restore 65\n\t"
                  "blr");
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#define PIRN_ENTRY "r12"
#define PIRN_ROOT "r11"
// clang-format off
// enter_last: r10 holds the sp. At the jump r1 is r10, lr is r11, r31 is 0, and ctr holds the function, as r12 does, from
// which it derives r2. The tables describe the root frame as the caller:
//   0c 0a 00          DW_CFA_def_cfa, register 10, offset 0    CFA = r10
//   .cfi_register     return address (register 65) in r11
#define PIRN_ENTER_TEXT                                 \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IS("10", "0"))                      \
  PIRN_CFI(".cfi_register 65, 11")                      \
  "mtlr 11\n\t"                                         \
  "mtctr 12\n\t"                                        \
  "li 31, 0\n\t"                                        \
  "mr 1, 10\n\t"                                        \
  "bctr\n\t"                                            \
  PIRN_CFI(".cfi_restore_state")
// clang-format on

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch::detail {
/// The sp at which an entry function begins.
PIRN_ALWAYS_INLINE void* initial_sp(void* top) noexcept {
  return reinterpret_cast<void**>(reinterpret_cast<word>(top) & ~word{15}) - 4;
}
}  // namespace arch::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/enter_last.hpp"  // IWYU pragma: export
