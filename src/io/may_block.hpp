// Calls that may block, made where they stop no worker.
#pragma once

#include <exception>

#include "fiber/runtime_state.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/detail/left_by_exit.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Calls `f` once: on a thread of the blocking pool, or directly where the pool has no thread for it at present, as in
/// a process made by fork, or where no fiber runs, as in a callback of a scheduler. For calls that must be made in any
/// case, such as those of destructors.
template <class F>
void call_in_pool(F f) noexcept {
  worker* const here = current_worker();
  if (here != nullptr && here->queue.runs_fiber() && !is_forked(here->owner) && !fibers_are_left() &&
      !here->owner.blocking.would_queue()) {
    try {
      return blocking(f);
    } catch (const std::exception&) {  // no thread for it
    }
  }
  f();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
