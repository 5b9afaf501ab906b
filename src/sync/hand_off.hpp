// Decides whether a lock is handed off to a waiter, or the waiter is only woken to try again.
#pragma once

#include "pirn/fiber/detail/control.hpp"
#include "pirn/fiber/detail/worker.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Returns whether a lock lies idle for no longer if it is handed to `w`: at most other fibers of this worker run
/// before it. Any other waiter, a thread most of all, may take a thousand times as long to run as the lock is held.
inline bool runs_here_next(const waiter& w) noexcept {
  const agent& who = *w.wake.agent();
  return who.kind() == agent_kind::fiber && static_cast<const fiber_control&>(who).home() == current_worker();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
