// The wake: all that is made ready outside of the run queues is made ready here.
#pragma once

#include <cstdint>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class agent;

/// Where a waiter goes in a list, and where a woken fiber goes in the run queue of its worker.
enum class placement : std::uint8_t {
  back,    ///< behind all others
  front,   ///< ahead of all others; for a fiber within `runtime_options::lifo_budget`
  direct,  ///< as `front`, and if the fiber is of the caller's worker the caller yields to it: a suspension point
};

/// Schedules an agent whose wait was claimed: queues a fiber on its worker, wakes a thread, or queues a chain of tasks.
/// Called once for each claim; the agent may be gone when this returns. Any thread. `make_ready` is the part without a
/// yield, `make_ready_and_yield` that for `placement::direct`.
void make_ready(agent& who, placement where) noexcept;
void make_ready_and_yield(agent& who) noexcept;
PIRN_ALWAYS_INLINE void schedule(agent& who, placement where) noexcept {
  where == placement::direct ? make_ready_and_yield(who) : make_ready(who, where);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
