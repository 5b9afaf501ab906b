// Twins of the primitives for the fibers of one worker: no atomic operations, the same names and meaning. Fibers of one
// worker take turns only where they suspend, so plain variables suffice in between.
//
// The first use binds an object to the caller's worker. Use from another worker or from a plain thread aborts with a
// message, in every build, and so does a wait in a migratable fiber; construction and destruction may happen anywhere.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "pirn/sync/channel.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/detail/local_queue.hpp"
#include "pirn/sync/detail/std_forms.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/local_barrier.hpp"
#include "pirn/sync/expert/local_future.hpp"
#include "pirn/sync/expert/local_locks.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
template <class Event>
class local_event_case;
}  // namespace detail

namespace local {

/// As `pirn::mutex` with mutex_policy::fair.
class mutex : public detail::timed_lock<mutex> {
 public:
  mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Locks the mutex. Suspension point. Not ended by a stop, since std::lock_guard could not tell.
  PIRN_ALWAYS_INLINE void lock() noexcept {
    if (!lock_if_free()) [[unlikely]] {
      static_cast<void>(waiters_.wait_to_own(state_, {.stoppable = false, .what = "local mutex", .object = this}));
    }
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A free mutex is locked in any case.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    if (lock_if_free()) [[likely]] {
      return {};
    }
    return waiters_.wait_to_own(state_, {.deadline = deadline, .what = "local mutex", .object = this});
  }
  /// Tries to lock the mutex. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_lock() noexcept {
    waiters_.enter();
    return std::exchange(state_, state::taken) != state::taken;
  }
  /// Unlocks; for the owner only (aborts when it is not locked). Hands off to the longest waiter. Does not suspend.
  PIRN_ALWAYS_INLINE void unlock() noexcept {
    waiters_.enter();
    if (state_ != state::taken) [[unlikely]] {
      waiters_.refuse("unlock() called on a local mutex that is not locked");
    }
    state_ = waiters_.hand_off();
  }

 private:
  using state = detail::local_lock_state;

  [[nodiscard]] PIRN_ALWAYS_INLINE bool lock_if_free() noexcept {
    waiters_.enter();
    if (state_ != state::free) [[unlikely]] {
      return false;
    }
    state_ = state::taken;
    return true;
  }

  state state_ = state::free;
  detail::local_queue waiters_;
};

/// As `pirn::wait_queue`, without a lock: the data that it guards changes only where a fiber suspends.
class wait_queue {
 public:
  wait_queue() noexcept = default;
  wait_queue(const wait_queue&) = delete;
  wait_queue& operator=(const wait_queue&) = delete;

  /// Suspends the caller until it is notified, or until `options` end the wait. Suspension point.
  [[nodiscard]] wake_reason wait(const wait_options& options) noexcept {
    waiters_.enter();
    return waiters_.list().wait(waiters_.home(), options);
  }
  /// Returns whether the queue is empty. False also if all its waiters are about to leave.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool empty() const noexcept {
    waiters_.enter();
    return waiters_.empty();
  }
  /// Wakes the longest waiter. True if there was one. Does not suspend. (Of several waiters woken one after the other
  /// the last one runs first; see runtime_options::lifo_budget.)
  PIRN_ALWAYS_INLINE bool notify_one() noexcept {
    waiters_.enter();
    return waiters_.wake_first();
  }
  /// Wakes all present waiters. O(n). Does not suspend.
  void notify_all() noexcept {
    waiters_.enter();
    waiters_.wake_all();
  }

 private:
  detail::local_queue waiters_;
};

/// As `pirn::condition_variable`.
class condition_variable : public detail::timed_condition<condition_variable> {
 public:
  condition_variable() noexcept = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  /// Unlocks, suspends until it is notified, the deadline passes or the caller is asked to stop, and locks again in
  /// any case. Throws what unlocking throws, and then has not waited. Suspension point.
  template <condition_lock Lock>
  [[nodiscard]] std::expected<void, wait_error> wait(Lock& lock, time_limit deadline = platform::never) {
    waiters_.enter();
    lock.unlock();
    const auto result = waiters_.wait({.deadline = deadline, .what = "local condition variable", .object = this});
    lock.lock();
    return result;
  }
  /// Waits until `ready()`, which is called with the lock held; an error means that it is still false.
  template <condition_lock Lock, std::predicate Predicate>
  [[nodiscard]] std::expected<void, wait_error> wait(Lock& lock, Predicate ready,
                                                     time_limit deadline = platform::never) {
    return detail::wait_until_ready(*this, lock, ready, deadline);
  }

  /// Wakes the longest waiter. Never suspends.
  void notify_one() noexcept {
    waiters_.enter();
    waiters_.wake_first();
  }
  /// Wakes all present waiters. O(n). Never suspends.
  void notify_all() noexcept {
    waiters_.enter();
    waiters_.wake_all();
  }

 private:
  detail::local_queue waiters_;
};

/// As `pirn::counting_semaphore`.
template <std::ptrdiff_t LeastMax = PTRDIFF_MAX / 2>
class counting_semaphore : public detail::timed_semaphore<counting_semaphore<LeastMax>> {
  static_assert(LeastMax >= 0 && LeastMax <= PTRDIFF_MAX / 2);

 public:
  /// Begins with `count` permits; aborts if that is negative or more than `max()`.
  explicit counting_semaphore(std::ptrdiff_t count) noexcept : count_(count) {
    if (count < 0 || count > max()) [[unlikely]] {
      waiters_.refuse("a local semaphore begins with a negative number of permits or more than its max()");
    }
  }
  counting_semaphore(const counting_semaphore&) = delete;
  counting_semaphore& operator=(const counting_semaphore&) = delete;

  /// Returns the largest number of permits.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return LeastMax; }

  /// Takes a permit; suspends while no permit is free, until the deadline passes or the caller is asked to stop. A free
  /// permit is taken in any case.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> acquire(
      time_limit deadline = platform::never) noexcept {
    if (try_acquire()) [[likely]] {
      return {};
    }
    return waiters_.wait({.deadline = deadline, .what = "local semaphore", .object = this});
  }
  /// Takes a permit if one is free. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_acquire() noexcept {
    waiters_.enter();
    if (count_ == 0) {
      return false;
    }
    --count_;
    return true;
  }
  /// Gives back `count` permits, to the longest waiters first. Aborts if `count` is negative or the permits become more
  /// than `max()`. Does not suspend. O(waiters woken).
  void release(std::ptrdiff_t count = 1) noexcept {
    waiters_.enter();
    if (count < 0 || count > max() - count_) [[unlikely]] {
      waiters_.refuse("a local semaphore is released above its max(), or by a negative number");
    }
    const bool several = count > 1;  // several waiters must run in their order
    for (; count != 0 && waiters_.wake_first(several); --count) {
    }
    count_ += count;
  }

 private:
  std::ptrdiff_t count_;
  detail::local_queue waiters_;
};
/// As `pirn::binary_semaphore`.
using binary_semaphore = counting_semaphore<1>;

/// As `pirn::event`.
class event {
 public:
  /// Begins unset.
  event() noexcept : event(event_reset::manual) {}
  explicit event(event_reset reset) noexcept : reset_(reset) {}
  event(const event&) = delete;
  event& operator=(const event&) = delete;

  /// Sets the event. Wakes all waiters; with automatic reset only the longest waiter, which then takes the event. Does
  /// not suspend. O(waiters woken).
  void set() noexcept {
    waiters_.enter();
    if (reset_ == event_reset::manual) {
      set_ = true;
      waiters_.wake_all();
    } else if (!waiters_.wake_first()) {
      set_ = true;
    }
  }
  /// Resets the event, if it is set. Never suspends.
  void reset() noexcept {
    waiters_.enter();
    set_ = false;
  }
  /// Whether it is set.
  [[nodiscard]] bool is_set() const noexcept {
    waiters_.enter();
    return set_;
  }
  /// Returns whether the event is set; automatic reset then resets it. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_wait() noexcept {
    waiters_.enter();
    return reset_ == event_reset::manual ? set_ : std::exchange(set_, false);
  }
  /// As `try_wait`, but suspends until it is set, the deadline passes or the caller is asked to stop.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> wait(
      time_limit deadline = platform::never) noexcept {
    if (try_wait()) [[likely]] {
      return {};
    }
    return waiters_.wait({.deadline = deadline, .what = "local event", .object = this});
  }

 private:
  template <class Event>
  friend class detail::local_event_case;

  const event_reset reset_;
  bool set_ = false;
  detail::local_queue waiters_;
};

/// As `pirn::latch`.
class latch {
 public:
  /// Begins with `expected`, which is not negative.
  explicit latch(std::ptrdiff_t expected) noexcept : left_(expected) {}
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  /// Returns the largest number to begin with.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return std::numeric_limits<std::ptrdiff_t>::max(); }

  /// Counts down by `count`; reaching zero wakes all waiters. Aborts when less is left or `count` is negative. Does not
  /// suspend.
  PIRN_ALWAYS_INLINE void count_down(std::ptrdiff_t count = 1) noexcept {
    waiters_.enter();
    if (count < 0 || count > left_) [[unlikely]] {
      waiters_.refuse("a local latch is counted down below zero");
    }
    left_ -= count;
    if (left_ == 0) {
      waiters_.wake_all();
    }
  }
  /// Returns whether the count is zero.
  [[nodiscard]] bool try_wait() const noexcept {
    waiters_.enter();
    return left_ == 0;
  }
  /// Suspends until the count is zero, the deadline passes or the caller is asked to stop.
  [[nodiscard]] std::expected<void, wait_error> wait(time_limit deadline = platform::never) noexcept {
    if (try_wait()) {
      return {};
    }
    return waiters_.wait({.deadline = deadline, .what = "local latch", .object = this});
  }
  /// Calls `count_down` and `wait`; on an error it has been counted down.
  [[nodiscard]] std::expected<void, wait_error> arrive_and_wait(std::ptrdiff_t count = 1,
                                                                time_limit deadline = platform::never) noexcept {
    count_down(count);
    return wait(deadline);
  }

 private:
  std::ptrdiff_t left_;
  detail::local_queue waiters_;
};

/// As `pirn::wait_group`.
class wait_group {
 public:
  /// Begins with `count` items to be done.
  explicit wait_group(std::uint32_t count = 0) noexcept : left_(count) {}
  wait_group(const wait_group&) = delete;
  wait_group& operator=(const wait_group&) = delete;

  /// Adds `count` items to be done.
  void add(std::uint32_t count = 1) noexcept {
    waiters_.enter();
    left_ += count;
  }
  /// Marks one item as done; the last one wakes all waiters. Aborts when more are done than were added. Does not
  /// suspend.
  PIRN_ALWAYS_INLINE void done() noexcept {
    waiters_.enter();
    if (left_ == 0) [[unlikely]] {
      waiters_.refuse("done() called on a local wait_group more often than items were added");
    }
    if (--left_ == 0) {
      waiters_.wake_all();
    }
  }
  /// Suspends until no item is left, the deadline passes or the caller is asked to stop.
  [[nodiscard]] std::expected<void, wait_error> wait(time_limit deadline = platform::never) noexcept {
    waiters_.enter();
    if (left_ == 0) {
      return {};
    }
    return waiters_.wait({.deadline = deadline, .what = "local wait group", .object = this});
  }
  /// Returns the number of items left.
  [[nodiscard]] std::uint64_t count() const noexcept {
    waiters_.enter();
    return left_;
  }

 private:
  std::uint64_t left_;
  detail::local_queue waiters_;
};

/// As `pirn::channel`.
template <class T>
using channel = pirn::channel<T, detail::one_worker>;

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
