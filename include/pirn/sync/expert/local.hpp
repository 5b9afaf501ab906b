// Twins of the primitives for the fibers of one worker: no atomic operations, the same names and meaning. Fibers of one
// worker take turns only where they suspend, so plain variables suffice in between.
//
// The first use binds an object to the caller's worker. Use from another worker or from a plain thread aborts with a
// message, in every build, and so does a wait in a migratable fiber; construction and destruction may happen anywhere.
// The classes are those of `pirn` in another domain: see pirn/sync/detail/domain.hpp.
#pragma once

#include <cstddef>

#include "pirn/sync/channel.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/detail/local_domain.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/local_barrier.hpp"
#include "pirn/sync/expert/local_future.hpp"
#include "pirn/sync/expert/local_locks.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/wait_group.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
extern template class basic_event<local_domain>;
extern template class countdown<local_domain>;
extern template class semaphore_core<local_domain>;
}  // namespace detail

namespace local {

/// As `pirn::wait_queue`, without a lock: the data that it guards changes only where a fiber suspends.
class wait_queue : detail::local_queue {
 public:
  /// Suspends the caller until it is notified, or until `options` end the wait. Suspension point.
  [[nodiscard]] wake_reason wait(const wait_options& options) noexcept {
    lock();
    return local_queue::wait(options);
  }
  /// Returns whether the queue is empty. False also if all its waiters are about to leave.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool empty() const noexcept {
    lock();
    return local_queue::empty();
  }
  /// Wakes the longest waiter. True if there was one. Does not suspend, except to switch over. (Of several waiters
  /// woken one after the other the last one runs first; see runtime_options::lifo_turns.)
  PIRN_ALWAYS_INLINE bool notify_one(wake_policy policy = wake_policy::enqueue) noexcept {
    return local_queue::notify_one(policy);
  }
  /// Wakes all present waiters. O(n). Does not suspend.
  void notify_all() noexcept { local_queue::notify_all(); }
};

/// As `pirn::condition_variable`.
class condition_variable : public detail::basic_condition_variable<detail::local_domain> {};

/// As `pirn::counting_semaphore`.
template <std::ptrdiff_t LeastMax = PTRDIFF_MAX / 2>
using counting_semaphore = pirn::counting_semaphore<LeastMax, detail::local_domain>;
/// As `pirn::binary_semaphore`.
using binary_semaphore = counting_semaphore<1>;

/// As `pirn::event`.
class event : public detail::basic_event<detail::local_domain> {
 public:
  using basic_event::basic_event;
};

/// As `pirn::latch`.
class latch : public detail::basic_latch<detail::local_domain> {
 public:
  using basic_latch::basic_latch;
};

/// As `pirn::wait_group`.
class wait_group : public detail::basic_wait_group<detail::local_domain> {
 public:
  using basic_wait_group::basic_wait_group;
};

/// As `pirn::channel`.
template <class T>
using channel = pirn::channel<T, detail::local_domain>;

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
