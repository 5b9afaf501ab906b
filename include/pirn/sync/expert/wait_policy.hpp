// The policy by which an object wakes its waiters.
#pragma once

#include <cstdint>

#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Which of several waiters of an object is woken first.
enum class wait_order : std::uint8_t {
  fifo,  ///< the longest
  /// The youngest, whose data is the likeliest in the cache. But every sixteenth time the longest, so no waiter
  /// starves.
  lifo,
};

/// How an object treats its waiters: a parameter of its constructor. After SWAPSTACK (Dolan et al. 2013), which has
/// queues and direct switches for each of its objects.
struct wait_policy {
  /// With `switch_over`, a call that wakes a waiter is a suspension point. Of several woken at once, the first one is
  /// switched to. Within a condition variable's `wait`, the unlock of such a mutex does not suspend.
  wake_policy wake = wake_policy::enqueue;
  wait_order order = wait_order::fifo;  ///< of several waiters
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
