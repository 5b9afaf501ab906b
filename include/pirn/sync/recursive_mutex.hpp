// A mutex that its owner may lock again.
#pragma once

#include <cstdint>

#include "pirn/sync/mutex.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

template <class Domain>
class basic_recursive_mutex : public timed_lock<basic_recursive_mutex<Domain>> {
 public:
  constexpr basic_recursive_mutex() noexcept = default;
  constexpr explicit basic_recursive_mutex(mutex_policy policy, wait_policy waiting = {}) noexcept
      : mutex_(policy, waiting) {}
  constexpr explicit basic_recursive_mutex(wait_policy waiting) noexcept : mutex_(waiting) {}

  /// Locks the mutex. Suspension point unless the caller is the owner. Not ended by a stop, since std::lock_guard could
  /// not tell.
  void lock() noexcept {
    agent& self = current_agent();
    if (!lock_again(self)) {
      mutex_.lock();
      become_owner(self);
    }
  }
  /// As `lock`, unless the deadline passes or the caller is asked to stop first. A mutex that is free or its own is
  /// locked in any case.
  [[nodiscard]] std::expected<void, wait_error> lock(time_limit deadline) noexcept {
    agent& self = current_agent();
    if (!lock_again(self)) {
      if (auto locked = mutex_.lock(deadline); !locked) {
        return locked;
      }
      become_owner(self);
    }
    return {};
  }
  /// Tries to lock the mutex. Never suspends.
  [[nodiscard]] bool try_lock() noexcept {
    agent& self = current_agent();
    if (!lock_again(self)) {
      if (!mutex_.try_lock()) {
        return false;
      }
      become_owner(self);
    }
    return true;
  }
  /// Unlocks; for the owner only (otherwise aborts). Does not suspend, unless its policy is `switch_over`.
  void unlock() noexcept {
    check_owner(current_agent());
    if (--depth_ == 0) {
      owner_.store(nullptr, platform::memory_order_relaxed);
      mutex_.unlock();
    }
  }

 private:
  [[nodiscard]] bool lock_again(const agent& self) noexcept {
    Domain::enter(mutex_.waiters_);
    // A caller that is not the owner never reads itself here.
    if (owner_.load(platform::memory_order_relaxed) != &self) {
      return false;
    }
    ++depth_;
    return true;
  }
  void become_owner(const agent& self) noexcept {
    owner_.store(&self, platform::memory_order_relaxed);
    depth_ = 1;
  }
  PIRN_DEFINED_ONCE void check_owner(const agent& self) const noexcept;

  basic_mutex<Domain> mutex_;
  typename Domain::template atomic<const agent*> owner_{nullptr};
  std::uint64_t depth_ = 0;  ///< used by the owner only
};

extern template class basic_recursive_mutex<shared_domain>;

}  // namespace detail

/// As `mutex`, but its owner may lock it any number of times and must unlock it as often. The owner is a fiber or a
/// plain thread. A task must not hold it over a `co_await`: the owner is the fiber that runs the task, and others too.
class recursive_mutex : public detail::basic_recursive_mutex<detail::shared_domain> {
 public:
  using basic_recursive_mutex::basic_recursive_mutex;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
