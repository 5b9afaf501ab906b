// Blocks that a body has open while it is suspended. A scope or a bound value is a link of a list that belongs to a
// fiber or a thread, and so to all stacks that run on it in turn. A block that a body opens on a separate stack would
// govern the code that runs after the body has yielded. So the open blocks leave with the body: they are taken off the
// list before the switch, and put back after it, on top of the blocks that are open then.
//
// A switch pays only for the test whether any body on this OS thread has a block open. The code that opens a block
// finds out whether it is on the stack of a body. A fiber stays on its thread meanwhile.
#pragma once

#include <cstdint>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/call_sites.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/context/detail/open_blocks.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// An sp of the running function.
PIRN_ALWAYS_INLINE arch::word stack_position() noexcept {
  // Not the address of the frame, which is the frame's beginning, above the memory that alloca has given.
  arch::word sp;
#if defined(__x86_64__) && !defined(__ILP32__)
  asm volatile("movq %%rsp, %0" : "=r"(sp));
#elif defined(__x86_64__) || defined(__i386__)
  asm volatile("movl %%esp, %k0" : "=r"(sp));
#elif defined(__aarch64__)
  asm volatile("mov %0, sp" : "=r"(sp));
#elif defined(__riscv)
  asm volatile("mv %0, sp" : "=r"(sp));
#elif defined(__powerpc64__)
  asm volatile("mr %0, 1" : "=r"(sp));
#else
#error "an instruction set that has no switch"
#endif
  return sp;
}

/// The stack of a body, and the stacks that are suspended together with it.
struct body_stack {
  arch::word limit;  ///< null for the stack of the caller of `take`, whatever that is
  arch::word top;
  const body_stack* next = nullptr;
  /// Its frames are copied elsewhere, so no list may have a link that lies there.
  bool moves = false;

  [[nodiscard]] bool holds(arch::word position) const noexcept {
    return position - limit < top - limit || (next != nullptr && next->holds(position));
  }
};

/// Blocks that were taken off: of each list the newest and the oldest, or null.
struct taken_blocks {
  void* newest_scope = nullptr;
  void* oldest_scope = nullptr;
  void* newest_value = nullptr;
  void* oldest_value = nullptr;

  [[nodiscard]] bool any() const noexcept { return newest_scope != nullptr || newest_value != nullptr; }
};

/// The functions that know the lists, which this layer does not know.
struct block_keeper {
  /// Takes off the blocks that the caller has opened on these stacks, or, if `from` is null, on the stacks of bodies.
  /// Throws std::logic_error where that is impossible, and std::bad_alloc; then all is as it was. If `from` is null it
  /// throws nothing, and ends the program if there is no memory. `position` is the caller's.
  taken_blocks (*take)(const body_stack* from, arch::word position);
  void (*put)(const taken_blocks& what) noexcept;
  /// Throws std::logic_error if the caller is part of a call that runs elsewhere on behalf of these stacks, which must
  /// not yield from there.
  void (*check)(const body_stack& from, arch::word position);
};
/// Null in a program that has no blocks.
extern const block_keeper keeper_of_blocks __attribute__((weak));

/// Takes off the blocks that are open on the stacks of a body, which calls it before a switch; as block_keeper::take.
PIRN_COLD inline taken_blocks take_blocks(const body_stack* from, arch::word position) {
  return &keeper_of_blocks != nullptr ? keeper_of_blocks.take(from, position) : taken_blocks{};
}
/// As block_keeper::check.
PIRN_COLD inline void check_yields_here(const body_stack& from, arch::word position) {
  if (&keeper_of_blocks != nullptr) {
    keeper_of_blocks.check(from, position);
  }
}
/// Puts the blocks back, once the body has been resumed.
PIRN_COLD inline void put_blocks(const taken_blocks& what) noexcept {
  if (what.any()) {
    keeper_of_blocks.put(what);
  }
}
/// Takes the blocks off in its constructor, and puts them back in its destructor.
class blocks_elsewhere {
 public:
  PIRN_COLD blocks_elsewhere(const body_stack* from, arch::word position) : taken_(take_blocks(from, position)) {}
  PIRN_COLD ~blocks_elsewhere() { put_blocks(taken_); }
  blocks_elsewhere(const blocks_elsewhere&) = delete;
  blocks_elsewhere& operator=(const blocks_elsewhere&) = delete;

 private:
  taken_blocks taken_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
