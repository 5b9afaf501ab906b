// The domain of the objects of pirn::local: the fibers of one worker. They take turns only where they suspend, so plain
// variables take the place of atomic ones, and a check of the worker that of a lock.
#pragma once

#include <cstdint>
#include <utility>

#include "pirn/fiber/detail/one_worker.hpp"
#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A plain variable with the interface of a platform::atomic.
template <class T>
class unshared {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as the atomic's
  constexpr unshared(T value = T()) noexcept : value_(value) {}

  template <class... Orders>
  [[nodiscard]] PIRN_ALWAYS_INLINE T load(Orders... /*orders*/) const noexcept {
    return value_;
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE void store(T value, Orders... /*orders*/) noexcept {
    value_ = value;
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE T exchange(T value, Orders... /*orders*/) noexcept {
    return std::exchange(value_, value);
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE bool compare_exchange_strong(T& expected, T value, Orders... /*orders*/) noexcept {
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = value;
    return true;
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE bool compare_exchange_weak(T& expected, T value, Orders... /*orders*/) noexcept {
    return compare_exchange_strong(expected, value);
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE bool replace_read(T /*before*/, T value, Orders... /*orders*/) noexcept {
    value_ = value;
    return true;
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE T fetch_add(T by, Orders... /*orders*/) noexcept {
    return std::exchange(value_, value_ + by);
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE T fetch_sub(T by, Orders... /*orders*/) noexcept {
    return std::exchange(value_, value_ - by);
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE T fetch_and(T with, Orders... /*orders*/) noexcept {
    return std::exchange(value_, value_ & with);
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE T fetch_or(T with, Orders... /*orders*/) noexcept {
    return std::exchange(value_, value_ | with);
  }

 private:
  T value_;
};

/// As `wait_queue`, but its lock is the check that the caller is a fiber of the object's worker.
class local_queue {
 public:
  PIRN_ALWAYS_INLINE void lock() const noexcept { home_.lock(); }
  void unlock() const noexcept {}

  [[nodiscard]] wake_reason wait(const wait_options& options) noexcept { return waiters_.wait(home_, options); }
  [[nodiscard]] waiter* claim_first() noexcept { return waiters_.claim_first(); }
  [[nodiscard]] waiter* claim_all() noexcept { return waiters_.claim_all(); }
  [[nodiscard]] waiter* front() const noexcept { return waiters_.front(); }
  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }
  [[nodiscard]] one_worker& own_lock() noexcept { return home_; }
  [[nodiscard]] wait_list& list() noexcept { return waiters_; }

  PIRN_ALWAYS_INLINE bool notify_one(wake_policy policy = wake_policy::enqueue) noexcept {
    lock();
    return !empty() && notify_one_and_unlock(policy);
  }
  bool notify_one_and_unlock(wake_policy policy = wake_policy::enqueue) noexcept;
  void notify_all() noexcept {
    lock();
    notify_all_and_unlock();
  }
  void notify_all_and_unlock() noexcept { wait_list::schedule_all(claim_all()); }

 private:
  one_worker home_;
  wait_list waiters_;
};

/// In place of `owner_mark`: the search for deadlocks does not read the variables of one worker. All fibers leave the
/// same mark.
class unmarked {
 protected:
  static constexpr void mark_owner() noexcept {}
  static constexpr void forget_owner() noexcept {}
  [[nodiscard]] PIRN_ALWAYS_INLINE const unmarked* mark() const noexcept { return this; }
  [[nodiscard]] static constexpr std::uintptr_t caller() noexcept { return no_fiber; }
  static constexpr std::uintptr_t no_fiber = 1;
  static constexpr std::uintptr_t contended_bit = std::uintptr_t{1} << (8 * sizeof(std::uintptr_t) - 1);

  unshared<std::uintptr_t> owner_{0};
};

/// Of objects that the fibers of one worker share: the worker of the first call. A call from elsewhere aborts.
struct local_domain {
  static constexpr bool is_local = true;
  template <class T>
  using atomic = unshared<T>;
  using lock = one_worker;
  using queue = local_queue;
  using owner_mark = unmarked;
  static PIRN_ALWAYS_INLINE void enter(const local_queue& waiters) noexcept { waiters.lock(); }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
