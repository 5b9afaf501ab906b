// AArch64, AAPCS64 on Linux. The contract and the stack pictures are in arch.hpp.
//
// Facts that shape the code (docs/abi.md names the test of each):
//   * `transfer` uses the registers of preserve_none (clang: x20 to x26) or, where that is missing, those of the
//     ordinary convention (x0 to x6): a fresh context's entry function finds its arguments in place either way.
//   * A frame with an over-aligned local and alloca is addressed through x19, which clang keeps using after an asm that
//     clobbers it. So x19 is not named: a context that leaves pushes its own and loads that of the resumed one, before
//     sp changes, while no signal handler can have run on that stack. Only the switch uses memory below sp: there is no
//     red zone.
//   * x29 cannot be a clobber in a function with a frame pointer: the asm saves it. x18 is an ordinary register here.
//   * With pointer authentication the return address of the function around the switch is signed, and its unwind table
//     says so; the address to which the exchange "returns" is not. There the exchange is a separate function.
//   * With branch target identification every place jumped to is a landing pad: `hint #36` (bti j), elsewhere a nop.
//   * A return address is looked up in the unwind tables as pc - 1, so an instruction that has the function's ordinary
//     tables stands before each resume label, and prepare never points pc at a function's first byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch/shared/types.hpp"
#include "pirn/context/arch/text/aarch64.h"  // IWYU pragma: export

#define PIRN_SYMBOL "S"
#if defined(PIRN_HAS_NONE)
#define PIRN_PC "x20"
#define PIRN_SP "x21"
#define PIRN_FP "x22"
#define PIRN_VALUE0 "x23"
#define PIRN_VALUE1 "x24"
#define PIRN_VALUE2 "x25"
#define PIRN_VALUE3 "x26"
#define PIRN_TRANSFER_CLOBBERS "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x27", "x28", PIRN_CLOBBER_REST
#else
#define PIRN_PC "x0"
#define PIRN_SP "x1"
#define PIRN_FP "x2"
#define PIRN_VALUE0 "x3"
#define PIRN_VALUE1 "x4"
#define PIRN_VALUE2 "x5"
#define PIRN_VALUE3 "x6"
#define PIRN_TRANSFER_CLOBBERS "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", PIRN_CLOBBER_REST
#endif
// clang-format off
#define PIRN_TRANSFER_TEXT                              \
  "mov x9, " PIRN_PC "\n\t"                             \
  "mov x10, " PIRN_SP "\n\t"                            \
  "mov x11, " PIRN_FP "\n\t"
#define PIRN_LEAVE_TEXT(tag)                            \
  "adr " PIRN_PC ", " PIRN_RESUME_ADDRESS "\n\t"        \
  "mov " PIRN_SP ", sp\n\t"                             \
  "mov " PIRN_FP ", x29\n\t"                            \
  tag
#define PIRN_TAG_TEXT "orr " PIRN_SP ", " PIRN_SP ", #1\n\t"
// Into a fresh stack: its sp is in x10, an address in the root frame in x9. At the jump sp is x10, x30 is x9, x29 is 0,
// and the entry function's arguments are in place; a fresh context takes no x19 over. The tables describe the root frame
// as the caller:
//   0c 0a 00          DW_CFA_def_cfa, register 10, offset 0    CFA = x10
//   .cfi_register     return address in x9
#define PIRN_INTO_TEXT                                  \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_CFI(PIRN_CFA_IS("10", "0"))                      \
  PIRN_CFI(".cfi_register x30, x9")                     \
  "str x19, [sp, #-16]!\n\t"                            \
  "mov x30, x9\n\t"                                     \
  "mov x29, xzr\n\t"                                    \
  "mov sp, x10\n\t"                                     \
  "b %[landing]\n\t"                                    \
  PIRN_CFI(".cfi_restore_state")
// clang-format on
#if defined(__ARM_FEATURE_PAC_DEFAULT)
#define PIRN_INTO_BY_PREPARE
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

inline constexpr std::size_t red_zone = 16;
inline constexpr std::size_t switch_zone = red_zone;
inline constexpr std::size_t root_size = 0;

/// The frame that every entry function appears to have been called from. Its unwind table says that there is no
/// caller, which ends a backtrace; running into it (an entry function returned) traps.
void root_frame() PIRN_ASM_NAME("root_frame");
PIRN_ASM_FUNCTION("root_frame", ".cfi_undefined x30\n\tnop\n\tnop\n\tnop\n\t.inst 0");

/// Where a fresh context begins (at + 8): it jumps to the entry function whose address lies on top of the stack, and
/// leaves all argument registers as the switch delivered them.
void start_frame() PIRN_ASM_NAME("start_frame");
// At the beginning sp points to the address of the entry function and, above it, the one in root_frame. At the jump x17
// and x30 hold these, and sp is above them. All other registers are as the switch delivered them.
PIRN_ASM_FUNCTION("start_frame", ".cfi_undefined x30\n\tnop\n\tnop\n\thint #38\n\tldp x17, x30, [sp], #16\n\tbr x17");

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

/// The floating-point control word of the running context, put back when it is resumed.
class kept_fp_words {
 public:
  PIRN_ALWAYS_INLINE kept_fp_words() noexcept { asm volatile("mrs %0, fpcr" : "=r"(fpcr_)); }
  PIRN_ALWAYS_INLINE void restore() const noexcept { asm volatile("msr fpcr, %0" : : "r"(fpcr_)); }

 private:
  std::uint64_t fpcr_;
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

/// Whether this thread runs under a guarded control stack, the shadow stack of this ISA. A switch would make the next
/// return fault, so callers refuse to start instead.
PIRN_ALWAYS_INLINE bool shadow_stack_active() noexcept {
  register word feature asm("x16") = 1;
  asm volatile("hint #40" : "+r"(feature));  // chkfeat: clears the bit of a feature that is on
  return feature == 0;
}

namespace detail {
/// Calls `function(first, second)` with an unwind table by which the caller is `suspended`.
word walk_as_if_called_by(const context* suspended, word first, word second, word (*function)(word, word))
    PIRN_ASM_NAME("walk_as_if_called_by");
// At the call x19 holds `suspended`, x0 and x1 the words, x3 the function. The tables of the call:
//   0f 03 83 08 06   DW_CFA_def_cfa_expression, 3 bytes: DW_OP_breg19 + 8, DW_OP_deref    CFA = *(x19 + 8), its sp
//   10 1e 02 83 00   DW_CFA_expression, register 30, 2 bytes: DW_OP_breg19 + 0            return address at x19 + 0
//   10 1d 02 83 10   DW_CFA_expression, register 29, 2 bytes: DW_OP_breg19 + 16           x29 at x19 + 16
//   .cfi_offset      its x19 below its sp, by the directive of this function's own x19: at CFA - 16
PIRN_ASM_FUNCTION("walk_as_if_called_by",
                  "hint #34\n\t"
                  "stp x29, x30, [sp, #-32]!\n\t"
                  ".cfi_def_cfa_offset 32\n\t.cfi_offset x29, -32\n\t.cfi_offset x30, -24\n\t"
                  "str x19, [sp, #16]\n\t"
                  ".cfi_offset x19, -16\n\t"
                  "mov x19, x0\n\tmov x0, x1\n\tmov x1, x2\n\t"
                  ".cfi_remember_state\n\t"
                  PIRN_CFA_IN("19", "8") "\n\t"
                  PIRN_SAVED_IN("30", "19", "0") "\n\t"
                  PIRN_SAVED_IN("29", "19", "16") "\n\t"
                  "blr x3\n\t"
                  ".cfi_restore_state\n\t"
                  "ldr x19, [sp, #16]\n\t"
                  ".cfi_restore x19\n\t"
                  "ldp x29, x30, [sp], #32\n\t"
                  ".cfi_def_cfa_offset 0\n\t.cfi_restore x29\n\t.cfi_restore x30\n\t"
                  "ret");
}  // namespace detail

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#define PIRN_ENTRY "x16"
#define PIRN_ROOT "x9"
// clang-format off
// enter_last: x10 holds the sp. At the jump sp is x10, x30 is x9, and x29 is 0. The tables describe the root frame as the
// caller:
//   0c 0a 00          DW_CFA_def_cfa, register 10, offset 0    CFA = x10
//   .cfi_register     return address in x9
#define PIRN_ENTERING_TEXT                              \
  PIRN_CFI(PIRN_CFA_IS("10", "0"))                      \
  PIRN_CFI(".cfi_register x30, x9")                     \
  "mov x30, x9\n\t"                                     \
  "mov x29, xzr\n\t"                                    \
  "mov sp, x10\n\t"                                     \
  "br x16\n\t"
#if defined(__ARM_FEATURE_PAC_DEFAULT)
#define PIRN_ENTER_TEXT "b pirn_" PIRN_ABI_NAME "_enter\n\t"
#else
#define PIRN_ENTER_TEXT                                 \
  PIRN_CFI(".cfi_remember_state")                       \
  PIRN_ENTERING_TEXT                                    \
  PIRN_CFI(".cfi_restore_state")
#endif
// clang-format on

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch::detail {
#if defined(__ARM_FEATURE_PAC_DEFAULT)
void enter() PIRN_ASM_NAME("enter");
PIRN_ASM_FUNCTION("enter", PIRN_ENTERING_TEXT);
#endif
/// The sp at which an entry function begins.
PIRN_ALWAYS_INLINE void* initial_sp(void* top) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<word>(top) & ~word{15});
}
}  // namespace arch::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#include "pirn/context/arch/shared/enter_last.hpp"  // IWYU pragma: export
