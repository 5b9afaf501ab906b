#include "pirn/sync/mutex.hpp"

#include "sync/misuse.hpp"

namespace pirn::inline PIRN_ABI {

std::expected<void, wait_error> mutex::lock_slow(const wait_options& how) noexcept {
  for (;;) {
    waiters_.lock();
    if (word_.exchange(contended, platform::memory_order_acquire) == unlocked) {
      // Nobody waits: let the unlock be a fast one. (With barging, somebody may.)
      if (waiters_.empty()) {
        word_.store(locked, platform::memory_order_relaxed);
      }
      waiters_.unlock();
      mark_owner();
      return {};
    }
    if (const wake_reason reason = waiters_.wait(how); reason != wake_reason::notified) {
      return std::unexpected(detail::error_of(reason));
    }
    if (policy_ == mutex_policy::fair) {
      mark_owner();
      return {};  // it was handed over
    }
  }
}

void mutex::unlock_slow() noexcept {
  for (;;) {
    waiters_.lock();
    if (word_.load(platform::memory_order_relaxed) == unlocked) {
      detail::misuse("unlock of a mutex that nobody has locked", this);
    }
    waiter* const next = waiters_.claim_first();
    const bool last = waiters_.empty();
    if (next != nullptr && policy_ == mutex_policy::fair) {
      // The word stays taken, now by `next`.
      if (last) {
        word_.store(locked, platform::memory_order_relaxed);
      }
      waiters_.unlock();
      detail::make_runnable(next->wake.who());
      return;
    }
    if (next != nullptr) {
      waiters_.unlock();
      // Unlocked with others still in the queue: `next` marks the word as contended again before it owns or waits.
      // It is not running yet, so the mutex is still there.
      word_.store(unlocked, platform::memory_order_release);
      detail::make_runnable(next->wake.who());
      return;
    }
    // Once the word says unlocked, another owner may destroy the mutex: that must be the last access.
    word_.store(locked, platform::memory_order_relaxed);
    waiters_.unlock();
    std::uint32_t expected = locked;
    if (word_.compare_exchange_strong(expected, unlocked, platform::memory_order_release,
                                      platform::memory_order_relaxed)) {
      return;
    }
  }
}

}  // namespace pirn::inline PIRN_ABI
