// The question that every switch of a body asks: body_blocks.hpp says what for.
#pragma once

#include <cstdint>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// All bits while blocks are open, and not taken off, that fibers of this OS thread, or itself, have opened on the
/// stacks of bodies; 0 otherwise. So one comparison, with an address, also asks whether that is null.
__attribute__((used)) inline constinit thread_local std::uint64_t blocks_of_bodies asm(
    "pirn_blocks_of_bodies_" PIRN_ABI_NAME) __attribute__((tls_model("initial-exec"))) = 0;

#if defined(__x86_64__) && !defined(__ILP32__)
// Compares that word with an operand; SCRATCH is a register that may be written.
#if !defined(__PIC__) || defined(__PIE__)
#define PIRN_COMPARE_BLOCKS(with, scratch) "cmpq " with ", %%fs:pirn_blocks_of_bodies_" PIRN_ABI_NAME "@tpoff\n\t"
#else
#define PIRN_COMPARE_BLOCKS(with, scratch)                                                                         \
  "movq pirn_blocks_of_bodies_" PIRN_ABI_NAME "@gottpoff(%%rip), %%" scratch "\n\tcmpq " with ", %%fs:(%%" scratch \
  ")\n\t"
#endif
/// Whether there are any. By an asm that no compiler caches across a switch, after which the thread may be another one.
[[nodiscard]] PIRN_ALWAYS_INLINE bool bodies_have_blocks() noexcept {
  bool any;
  asm volatile(PIRN_COMPARE_BLOCKS("$0", "r11") : "=@ccne"(any) : : "r11", "cc");
  return any;
}
/// Whether there are any, or this is null.
[[nodiscard]] PIRN_ALWAYS_INLINE bool bodies_have_blocks_or_null(const void* what) noexcept {
  bool any;
  asm volatile(PIRN_COMPARE_BLOCKS("%1", "r11") : "=@ccae"(any) : "r"(what) : "r11", "cc");
  return any;
}
#else
/// Fibers do not run here, and so there are no blocks.
[[nodiscard]] PIRN_ALWAYS_INLINE constexpr bool bodies_have_blocks() noexcept { return false; }
[[nodiscard]] PIRN_ALWAYS_INLINE constexpr bool bodies_have_blocks_or_null(const void* what) noexcept {
  return what == nullptr;
}
#endif

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
