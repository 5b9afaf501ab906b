// The wake, inlined for a pinned fiber of the caller's worker. `schedule` itself is declared beside the agent and
// defined in schedule.cpp: all that is made ready outside of the run queues is made ready by it.
#pragma once

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Runs `who` in place of the caller, which goes behind all ready fibers: a suspension point. The caller has claimed
/// the wait of `who`, and that must be one that can receive a word. False if a rule of the scheduler or exceptions in
/// flight forbid the switch; then nothing has happened.
PIRN_ALWAYS_INLINE bool switch_to_with_value(agent* who, std::uintptr_t given) noexcept {
  worker* const here = current_worker();
  fiber_control* const next = here != nullptr ? pinned_fiber(who, here) : nullptr;
  if (next == nullptr || here->budget.left() == 0 || !here->queue.may_overtake() || here->suspend_slow_mask->any()) {
    return false;
  }
  static_cast<void>(here->budget.consume());
  run_node* const self = here->queue.running();
  here->queue.hand_over(next);
  static_cast<void>(switch_started(here, self, next, nullptr, &given));
  return true;
}

/// As `schedule`, but the part for a pinned fiber of this worker is inlined into the caller. Not with
/// `placement::direct`.
PIRN_ALWAYS_INLINE void schedule_inline(agent& who, placement where) noexcept {
  worker* const here = current_worker();
  if (fiber_control* const f = pinned_fiber(&who, here)) [[likely]] {
    here->queue.push(f, where);
  } else {
    make_ready(who, where);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
