// The common parts of the classes of sync: the domain of an object, the result of a wait, and the waits with the names
// and results of the standard library, for programs that come from there and for code that calls them by name
// (std::unique_lock).
//
// Each class is written once, as a template whose parameter `Domain` says which callers share an object:
// `shared_domain` for fibers of any worker and plain threads, `local_domain` (local_domain.hpp) for the fibers of one
// worker. A class that is no template otherwise is written as `detail::basic_x<Domain>`, and `pirn::x` and
// `pirn::local::x` are classes that inherit it and add nothing. They are no aliases, so that a message of the compiler,
// a debugger and a mangled name say `pirn::mutex`, and a program can declare `class mutex;` without this header. A
// class that is a template anyway (`channel`, `counting_semaphore`, `barrier`, `future`) has `Domain` as its last
// parameter, and its local form is an alias, so that its other parameters can be deduced.
//
// What is not inline is defined in src/sync and instantiated there for both domains. The headers declare that by
// `extern template`, so that no program compiles it again.
#pragma once

#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/sync/expert/wait_policy.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class owner_mark;

/// The policy of an object, and which of its waiters is next. Under the lock of the object's queue.
class waiting_rule {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): it is the policy
  constexpr waiting_rule(wait_policy policy) noexcept : policy_(policy) {}

  [[nodiscard]] wake_policy wake() const noexcept { return policy_.wake; }
  /// Returns where a single waiter that is woken goes in the run queue.
  [[nodiscard]] placement where() const noexcept { return placement_of(policy_.wake); }
  [[nodiscard]] wait_order order() const noexcept { return policy_.order; }
  /// As `wait_list::claim_first`, for the waiter that is next by the policy.
  [[nodiscard]] PIRN_ALWAYS_INLINE waiter* claim_next(wait_list& waiters) noexcept {
    if (order() == wait_order::lifo && ++claims_ % claims_until_longest == 0) [[unlikely]] {
      return waiters.claim_last();
    }
    return waiters.claim_first();
  }
  /// As `wait_list::wait`, at the end of the list where the waiter belongs.
  template <class Lock>
  [[nodiscard]] wake_reason wait(wait_list& waiters, Lock& lock, const wait_options& options,
                                 void* value = nullptr) const noexcept {
    return order() == wait_order::lifo ? waiters.wait_in_front(lock, options, value)
                                       : waiters.wait(lock, options, value);
  }

 private:
  static constexpr std::uint8_t claims_until_longest = platform::exploring ? 2 : 16;

  wait_policy policy_;
  std::uint8_t claims_ = 0;
};

/// Of objects that fibers of any worker and plain threads share.
struct shared_domain {
  static constexpr bool is_local = false;
  template <class T>
  using atomic = platform::atomic<T>;
  using lock = platform::spinlock;
  using queue = wait_queue;
  using owner_mark = detail::owner_mark;
  /// Comes first in each call that does not lock the queue anyway.
  static void enter(const wait_queue& /*waiters*/) noexcept {}
};
struct local_domain;

/// Returns the name of an object in a dump. It is given as that of a local one, "local mutex".
template <class Domain>
[[nodiscard]] constexpr const char* name_of(const char* local) noexcept {
  return Domain::is_local ? local : local + sizeof("local ") - 1;
}

/// Returns success if a wait was notified, or else its error.
[[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> wait_result(wake_reason reason) noexcept {
  if (reason != wake_reason::notified) [[unlikely]] {
    return std::unexpected(error_of(reason));
  }
  return {};
}

// NOLINTBEGIN(bugprone-crtp-constructor-accessibility): they have no state that could be constructed wrongly
/// For a lock with `lock(time_limit)`.
template <class Lock>
class timed_lock {
 public:
  /// Locks. False if that much time passes or the caller is asked to stop first. Suspension point.
  [[nodiscard]] bool try_lock_for(time_span how_long) noexcept { return try_lock_until(how_long); }
  /// As `try_lock_for`, but until a point in time of any clock.
  [[nodiscard]] bool try_lock_until(time_limit when) noexcept {
    return static_cast<Lock&>(*this).lock(when).has_value();
  }
};
/// For a lock with `lock_shared(time_limit)` too.
template <class Lock>
class timed_shared_lock : public timed_lock<Lock> {
 public:
  /// As `try_lock_for` and `try_lock_until`, to read.
  [[nodiscard]] bool try_lock_shared_for(time_span how_long) noexcept { return try_lock_shared_until(how_long); }
  [[nodiscard]] bool try_lock_shared_until(time_limit when) noexcept {
    return static_cast<Lock&>(*this).lock_shared(when).has_value();
  }
};
/// For a semaphore with `acquire(time_limit)`.
template <class Semaphore>
class timed_semaphore {
 public:
  /// Takes a permit. False if that much time passes or the caller is asked to stop first. Suspension point.
  [[nodiscard]] bool try_acquire_for(time_span how_long) noexcept { return try_acquire_until(how_long); }
  /// As `try_acquire_for`, but until a point in time of any clock.
  [[nodiscard]] bool try_acquire_until(time_limit when) noexcept {
    return static_cast<Semaphore&>(*this).acquire(when).has_value();
  }
};
// NOLINTEND(bugprone-crtp-constructor-accessibility)

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
