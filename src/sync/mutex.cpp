// The slow paths of a mutex: spinning, waits, and hand-offs.
#include "pirn/sync/mutex.hpp"

#include "pirn/sync/detail/lock_waiter.hpp"
#include "sync/hand_off.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

std::expected<void, wait_error> mutex::lock_slow(const wait_options& options) noexcept {
  if (lock_if_free_soon()) {
    return {};
  }
  const std::uintptr_t self = caller();
  detail::lock_waiter me;
  for (;;) {
    waiters_.lock();
    // If the mutex is free and the queue empty, the unlock can be a fast one. (With barging, the queue may hold
    // waiters.)
    const std::uintptr_t mine = waiters_.empty() ? self : self | contended_bit;
    std::uintptr_t holder = owner_.load(platform::memory_order_relaxed);
    while (!owner_.compare_exchange_weak(holder, holder == unlocked ? mine : holder | contended_bit,
                                         platform::memory_order_acquire, platform::memory_order_relaxed)) {
    }
    if (holder == unlocked) {
      waiters_.unlock();
      return {};
    }
    if (const wake_reason reason = me.wait(waiters_, options); reason != wake_reason::notified) {
      return std::unexpected(detail::error_of(reason));
    }
    if (policy_ == mutex_policy::fair) {
      if (me.owns()) {  // then only the word's upper bit changes meanwhile
        owner_.fetch_add(self - no_fiber, platform::memory_order_relaxed);
        return {};
      }
      if (take_handed_off()) {
        return {};
      }
      me.count_bypass();
    }
  }
}

bool mutex::lock_if_free_soon() noexcept {
  if (platform::exploring || platform::only_thread()) {
    return false;  // no other thread runs meanwhile
  }
  const detail::fiber_control* const holds = owner();
  if (holds != nullptr && holds->home() == detail::current_worker()) {
    return false;
  }
  for (int spins = 0; spins < max_spins; ++spins) {
    const std::uintptr_t holder = owner_.load(platform::memory_order_relaxed);
    if (holder == unlocked) {
      if (lock_if_free()) {
        return true;
      }
    } else if ((holder & contended_bit) != 0 || holder == handed_off) {
      return false;
    }
    platform::relax();
  }
  return false;
}

bool mutex::take_handed_off() noexcept {
  const std::uintptr_t self = caller();
  std::uintptr_t word = owner_.load(platform::memory_order_relaxed);
  while ((word & ~contended_bit) == handed_off) {
    if (owner_.compare_exchange_weak(word, self | (word & contended_bit), platform::memory_order_acquire,
                                     platform::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void mutex::unlock_slow() noexcept {
  for (;;) {
    waiters_.lock();
    const std::uintptr_t self = owner_.load(platform::memory_order_relaxed) & ~contended_bit;
    if (self == unlocked || self == handed_off) {
      detail::misuse("unlock() called on a mutex that is not locked", this);
    }
    waiter* const next = waiters_.claim_first();
    const bool granted = next != nullptr && detail::lock_waiter::try_grant(*next);
    if (next != nullptr && policy_ == mutex_policy::fair && (granted || detail::runs_here_next(*next))) {
      // The word stays taken, now for `next`, which has no mark as long as it does not run.
      const std::uintptr_t holder = granted ? no_fiber : handed_off;
      owner_.store(waiters_.empty() ? holder : holder | contended_bit, platform::memory_order_release);
      waiters_.unlock();
      detail::make_runnable(next->wake.agent());
      return;
    }
    if (next != nullptr) {
      waiters_.unlock();
      // Unlocked with others still in the queue: `next` marks the word as contended again before it owns or waits.
      // It is not running yet, so the mutex is still there.
      owner_.store(unlocked, platform::memory_order_release);
      detail::make_runnable(next->wake.agent());
      return;
    }
    // Once the word says unlocked, another owner may destroy the mutex: that must be the last access.
    owner_.store(self, platform::memory_order_relaxed);
    waiters_.unlock();
    std::uintptr_t holder = self;
    if (owner_.compare_exchange_strong(holder, unlocked, platform::memory_order_release,
                                       platform::memory_order_relaxed)) {
      return;
    }
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
