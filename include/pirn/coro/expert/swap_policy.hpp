// The interface between a dispatcher of swapped tasks and the scheduler that a program writes for it.
#pragma once

#include <concepts>
#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class swapped_task;

/// The decisions of the user. `next` returns the task that runs now: a fresh one with a body, a blocked one, or null to
/// let `run` return. It is called on the stack of the blocking task, and returning that task again costs no copy.
/// `allocate` returns at least `size` bytes, or null; `free` gets them back with the same size. None of them may block,
/// or destroy a swapped task that is calling `block`. A policy may also have a `swap_shrink`, named `shrink`.
template <class P>
concept swap_policy = requires(P& policy, std::size_t size, void* buffer) {
  { policy.next() } noexcept -> std::same_as<swapped_task*>;
  { policy.allocate(size) } noexcept -> std::same_as<void*>;
  { policy.free(buffer, size) } noexcept;
};

/// A policy of three functions, chosen at run time.
struct swap_callbacks {
  swapped_task* (*next_one)(void* user) = nullptr;                            ///< as `swap_policy` says of `next`
  void* (*allocate_buffer)(void* user, std::size_t size) = nullptr;           ///< as it says of `allocate`
  void (*free_buffer)(void* user, void* buffer, std::size_t size) = nullptr;  ///< as it says of `free`
  void* user = nullptr;                                                       ///< passed to each of the three

  /// Calls `next_one`.
  swapped_task* next() const noexcept { return next_one(user); }
  /// Calls `allocate_buffer`.
  void* allocate(std::size_t size) const noexcept { return allocate_buffer(user, size); }
  /// Calls `free_buffer`.
  void free(void* buffer, std::size_t size) const noexcept { free_buffer(user, buffer, size); }
};

/// A policy that also says whether a task that has run for a time slice is to block now: `preempt` returns that, and if
/// so the task is among those that `next` returns. Called in a signal handler, on the stack of the running task, but
/// only where a function that the program has marked was interrupted, so it may do what `next` may do.
template <class P>
concept preemptive_swap_policy = swap_policy<P> && requires(P& policy, swapped_task& running) {
  { policy.preempt(running) } noexcept -> std::same_as<bool>;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
