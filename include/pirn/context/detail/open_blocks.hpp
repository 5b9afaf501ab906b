// The test that every switch of a body makes. Its purpose is in body_blocks.hpp.
#pragma once

#include <cstdint>

#include "pirn/detail/abi.hpp"
#include "pirn/detail/thread_word.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// All bits are set while blocks are open, and not taken off, that fibers of this OS thread, or the thread itself, have
/// opened on the stacks of bodies; 0 otherwise. So one comparison, with an address, also tests whether that address is
/// null.
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
/// Whether such blocks are open. No compiler caches the result of the asm across a switch, after which the thread may
/// be another one.
[[nodiscard]] PIRN_ALWAYS_INLINE bool bodies_have_blocks() noexcept {
  bool any;
  asm volatile(PIRN_COMPARE_BLOCKS("$0", "r11") : "=@ccne"(any) : : "r11", "cc");
  return any;
}
/// Whether such blocks are open, or `what` is null.
[[nodiscard]] PIRN_ALWAYS_INLINE bool bodies_have_blocks_or_null(const void* what) noexcept {
  bool any;
  asm volatile(PIRN_COMPARE_BLOCKS("%1", "r11") : "=@ccae"(any) : "r"(what) : "r11", "cc");
  return any;
}
#elif __SIZEOF_POINTER__ == 8
#if !defined(PIRN_READ_THREAD_WORD)
PIRN_NOINLINE inline std::uint64_t blocks_of_bodies_out_of_line() noexcept {
  asm volatile("");  // keeps callers from treating this as a pure function
  return blocks_of_bodies;
}
#endif
[[nodiscard]] PIRN_ALWAYS_INLINE bool bodies_have_blocks() noexcept {
#if defined(PIRN_READ_THREAD_WORD)
  std::uint64_t open;
  PIRN_READ_THREAD_WORD(open, "pirn_blocks_of_bodies_" PIRN_ABI_NAME);
  return open != 0;
#else
  return blocks_of_bodies_out_of_line() != 0;
#endif
}
[[nodiscard]] PIRN_ALWAYS_INLINE bool bodies_have_blocks_or_null(const void* what) noexcept {
  return what == nullptr || bodies_have_blocks();
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
