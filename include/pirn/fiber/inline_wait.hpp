// A wait whose switch is a part of the caller.
#pragma once

#include "pirn/fiber/detail/worker.hpp"

namespace pirn::inline PIRN_ABI {

/// As `queue.wait({.stoppable = false, ...})` with `what` and `object` for dumps: with the lock of the queue held,
/// until it is notified. In a pinned fiber the switch is in the caller, which keeps across it what it needs itself and
/// no registers of a function in between: less to save and restore, and a few hundred bytes of code for each call. For
/// what waits most of the time. Suspension point.
PIRN_ALWAYS_INLINE void wait_inline(wait_queue& queue, const char* what, const void* object = nullptr) noexcept {
  const wait_options how{.stoppable = false, .what = what, .object = object};
  detail::worker* const here = detail::current_worker();
  if (here == nullptr || !detail::running_fiber(here)->is_pinned_to(here)) [[unlikely]] {
    static_cast<void>(queue.wait(how));
    return;
  }
  detail::fiber_control& self = *detail::running_fiber(here);
  std::uint64_t epoch = 0;
  static_cast<void>(self.begin(detail::wait_kind::sole, epoch));  // which no stop refuses
  waiter node;
  node.wake = waker(self, epoch);
  queue.enter(node);
  detail::suspend_pinned(here, self, epoch, how, [&queue] { queue.unlock(); });
}

}  // namespace pirn::inline PIRN_ABI
