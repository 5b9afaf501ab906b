// The origin of a stack, to which it returns, without the type of its allocator.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/stack_end.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A stack_allocator, or an allocator with stacks of one size only, like guarded_pool::cache.
template <class A>
concept gives_stacks = stack_allocator<A> || requires(A& allocator, stack value) {
  { allocator.allocate() } noexcept -> std::same_as<stack_result>;
  { allocator.deallocate(value) } noexcept;
};

/// The number of bytes to ask for by default: all of a buffer, default_stack_size from other allocators.
template <class Allocator>
inline constexpr std::size_t usual_size = default_stack_size;
template <template <std::size_t> class Buffer, std::size_t size>
inline constexpr std::size_t usual_size<Buffer<size>> = size;

[[noreturn]] __attribute__((cold, noinline)) inline void no_stack(stack_error why, const char* whose) {
  throw std::system_error(make_error_code(why), whose);
}

/// A stack and the allocator that takes it back; memory of the user's has none.
struct stack_source {
  /// The slot of memory with a word at its end. An allocator may use this slot too, which costs a word there.
  static constexpr std::uintptr_t marked_slot = UINTPTR_MAX;

  stack memory;
  void* allocator = nullptr;
  // Passed word by word: by reference, an object that holds this could not live in registers.
  void (*release)(void* allocator, void* limit, void* top, void* owner, std::uintptr_t slot) noexcept = nullptr;

  PIRN_ALWAYS_INLINE stack_source() noexcept = default;
  PIRN_ALWAYS_INLINE explicit stack_source(const stack& users) noexcept
      : memory(users.limit(), users.top(), nullptr, marked_slot) {
    frame_bodies::made_anywhere();
  }
  /// Throws std::system_error, whose text begins with `whose`.
  template <gives_stacks Allocator>
  PIRN_ALWAYS_INLINE stack_source(Allocator& from, std::size_t size, const char* whose)
      : allocator(std::addressof(from)),
        release([](void* to, void* limit, void* top, void* owner, std::uintptr_t slot) noexcept {
          if constexpr (!maps_stacks<Allocator>) {
            frame_bodies::gone(limit, top);
          }
          if constexpr (marks_end<Allocator>) {
            stack_end::check("a coroutine", limit, top);
          }
          static_cast<Allocator*>(to)->deallocate(stack(limit, top, owner, slot));
        }) {
    stack_result got;
    if constexpr (stack_allocator<Allocator>) {
      got = from.allocate(size);
    } else {
      got = from.allocate();
    }
    if (!got) [[unlikely]] {
      no_stack(got.error, whose);
    }
    memory = got.value;
    if constexpr (marks_end<Allocator>) {
      memory = stack(memory.limit(), memory.top(), memory.owner(), marked_slot);
    }
    if constexpr (!maps_stacks<Allocator>) {
      frame_bodies::made(memory.limit(), memory.top());
    }
  }
  /// Returns whether it has such a word, which is written where the memory is known to be large enough.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool marked() const noexcept { return memory.slot() == marked_slot; }
  /// Ends the use of the stack.
  PIRN_ALWAYS_INLINE void give_back() noexcept {
    if (release != nullptr) {
      release(allocator, memory.limit(), memory.top(), memory.owner(), memory.slot());
    } else if (marked()) {
      stack_end::check("a coroutine", memory.limit(), memory.top());
    }
  }
  /// As `give_back`, but the stack must be unused.
  PIRN_ALWAYS_INLINE void give_back_unused() noexcept {
    if (release != nullptr) {
      if (marked()) {
        stack_end::put(memory.limit());
      }
      give_back();
    }
  }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
