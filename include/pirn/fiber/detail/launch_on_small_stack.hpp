// The last steps of a spawn on a small stack, whether the stack is checked or has a bound.
#pragma once

#include "pirn/fiber/fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Adds the cold part of a fiber to a small stack that was found for it. Where there is no memory for that, gives the
/// stack back and returns the error.
[[nodiscard]] stack_result with_cold_part(const stack_result& found) noexcept;
/// As `with_cold_part`, if a fiber with these options has a cold part from the beginning. Otherwise the fiber makes it
/// when it needs it.
[[nodiscard]] PIRN_ALWAYS_INLINE stack_result with_cold_part_for(const spawn_options& options,
                                                                 const stack_result& found) noexcept {
  return options.name.empty() && !options.stop.stop_possible() ? found : with_cold_part(found);
}
/// Gives back such a stack, on which no fiber has begun.
void give_back_unused(const stack& memory) noexcept;

/// Gives a new fiber its stack and what `options` ask for, and makes it ready on the worker `to`. It stays there.
/// `flags` go into its home word.
inline void launch_on_small_stack(worker* here, worker* to, fiber_control* f, const stack& memory,
                                  const spawn_options& options, std::uintptr_t flags = 0) {
  f->attach_small_stack(memory);
  if (!options.name.empty()) {
    f->set_name(options.name);
  }
  if (options.stop.stop_possible()) {
    follow_token(f, options.stop);
  }
  f->assign_worker(to, mobility::pinned, to->traced | flags);
  f->set_high_priority(options.priority == fiber_priority::high);
  if (to != here) {
    f->join_word.store(join_remote, platform::memory_order_relaxed);
  }
  if (to->traced != 0) [[unlikely]] {
    trace_spawned(f);
  }
  if (to == here && options.priority == fiber_priority::normal) {
    launch_here(here, f);
  } else {
    launch_slow(here, to, f);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
