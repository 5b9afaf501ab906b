// Operations of a fiber on itself. On a plain OS thread each call does the same to the thread.
#pragma once

#include <cstdint>
#include <expected>
#include <string_view>
#include <type_traits>

#include "pirn/fiber/detail/worker.hpp"
#include "pirn/fiber/fiber_id.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Why a fiber did not move to another worker.
enum class migrate_error : std::uint8_t {
  not_migratable = 1,  ///< it was not spawned as migratable, or the caller is a plain thread
  no_such_worker = 2,
  has_deadline = 3,  ///< it has a scope with a deadline open, whose timer belongs to the worker
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace this_fiber {

/// Lets the other ready fibers of this worker run first. Suspension point. Costs about as much as a function call. On a
/// plain thread a yield of that thread, in which the fibers of a worker on it run (`runtime_options::calling_thread`).
PIRN_ALWAYS_INLINE void yield() noexcept {
  detail::worker* const w = detail::current_worker();
  if (w == nullptr) [[unlikely]] {
    detail::yield_on_thread();
    return;
  }
  if (w->consume_budget() || (w->queue.woken() | w->yield_slow_mask->bits()) != 0) [[unlikely]] {
    detail::yield_slow(w);
    return;
  }
  detail::run_node* const self = w->queue.running();
  detail::run_node* const next = w->queue.rotate();
  if (std::is_empty_v<sanitizer_state> || next != self) {  // a switch to itself works, except for a sanitizer
    detail::switch_started(w, self, next, nullptr);
  }
}

/// Yields if the fibers of this worker have run for a time slice (`runtime_options::time_slice`) without a look at its
/// timers, its engine and fibers from elsewhere, or another fiber has waited that long. For loops that compute.
/// Suspension point, in runtimes with a time slice. Costs a load and a test otherwise, about 0.3 ns. Does nothing on a
/// plain thread. After Go's loop preemption checks, and the safe points of garbage collectors.
PIRN_ALWAYS_INLINE void preemption_point() noexcept {
  if (detail::worker* const w = detail::current_worker()) [[likely]] {
    detail::preemption_point(w);
  }
}

/// Suspends for at least the given time, of any unit, or until a point of any clock. A time too far away to count in
/// nanoseconds lasts until a stop. The error is that of a stop or of a scope's deadline; then the sleep may be shorter.
/// Suspension point.
[[nodiscard]] std::expected<void, wait_error> sleep_until(time_limit when) noexcept;
/// As `sleep_until`, for a time.
[[nodiscard]] std::expected<void, wait_error> sleep_for(time_span how_long) noexcept;

/// Migrates the calling fiber, which must be migratable, to the worker with that index; it may migrate again later.
/// Suspension point, which no stop ends, unless it is there already or there is an error.
[[nodiscard]] std::expected<void, migrate_error> migrate_to(std::size_t worker) noexcept;

/// Sets the fiber's priority from its next switch on (see `spawn_options::priority`). Does nothing on a plain thread.
inline void set_priority(fiber_priority priority) noexcept {
  if (detail::worker* const w = detail::current_worker()) {
    const bool high = priority == fiber_priority::high;
    detail::running_fiber(w)->set_high_priority(high);
    if (high) {
      w->queue.running_is_high_now();
    }
  }
}

/// Returns the id of the calling fiber or thread.
[[nodiscard]] fiber_id get_id() noexcept;
/// Returns the fiber's number, unique in its process and never reused; 0 on a plain thread.
[[nodiscard]] std::uint64_t number() noexcept;
/// Returns the name that it was spawned with; empty without one and on a plain thread.
[[nodiscard]] std::string_view name() noexcept;
/// Returns whether the caller is to stop: it was asked to, through its handle or its token, or a scope around it is
/// stopped or past its deadline.
[[nodiscard]] bool stop_requested() noexcept;
/// As `stop_requested`, but as an error that says why, as a blocking call would end here. For loops that compute.
[[nodiscard]] std::expected<void, wait_error> check_stop() noexcept;

}  // namespace this_fiber
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
