// The question that every switch of a body asks: body_blocks.hpp says what for.
#pragma once

#include <cstdint>

#include "pirn/detail/abi.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// How many blocks are open, and not taken off, that fibers of this OS thread, or itself, have opened on the stacks of
/// bodies.
__attribute__((used)) inline constinit thread_local std::uint64_t blocks_of_bodies asm(
    "pirn_blocks_of_bodies_" PIRN_ABI_NAME) __attribute__((tls_model("initial-exec"))) = 0;

#if defined(__x86_64__) && !defined(__ILP32__)
// Compares that word with 0; SCRATCH is a register that may be written.
#if !defined(__PIC__) || defined(__PIE__)
#define PIRN_ASK_FOR_BLOCKS(scratch) "cmpq $0, %%fs:pirn_blocks_of_bodies_" PIRN_ABI_NAME "@tpoff\n\t"
#else
#define PIRN_ASK_FOR_BLOCKS(scratch) \
  "movq pirn_blocks_of_bodies_" PIRN_ABI_NAME "@gottpoff(%%rip), %%" scratch "\n\tcmpq $0, %%fs:(%%" scratch ")\n\t"
#endif
/// Whether that is not 0. By an asm that no compiler caches across a switch, after which the thread may be another one.
[[nodiscard]] PIRN_ALWAYS_INLINE bool bodies_have_blocks() noexcept {
  bool any;
  asm volatile(PIRN_ASK_FOR_BLOCKS("r11") : "=@ccne"(any) : : "r11", "cc");
  return any;
}
#else
/// Fibers do not run here, and so there are no blocks.
[[nodiscard]] PIRN_ALWAYS_INLINE constexpr bool bodies_have_blocks() noexcept { return false; }
#endif

}  // namespace pirn::inline PIRN_ABI::detail
