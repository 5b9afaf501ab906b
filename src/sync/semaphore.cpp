// The slow paths of a semaphore: waits, and hand-offs of permits.
#include "pirn/sync/semaphore.hpp"

#include "pirn/sync/detail/lock_waiter.hpp"
#include "sync/hand_off.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

void semaphore_core::refuse_count() noexcept {
  misuse("a counting_semaphore begins with a count that is negative or above its maximum", this);
}

std::expected<void, wait_error> semaphore_core::acquire_slow(platform::time_point deadline) noexcept {
  lock_waiter me;
  for (bool woken = false;;) {
    waiters_.lock();
    owed_ -= woken ? 1 : 0;
    if (take_or_mark()) {
      waiters_.unlock();
      return {};
    }
    const wake_reason reason = me.wait(waiters_, {.deadline = deadline, .what = "semaphore", .object = this});
    if (reason != wake_reason::notified) {
      return std::unexpected(error_of(reason));
    }
    if (me.owns()) {
      return {};  // a permit was handed off
    }
    me.count_bypass();
    woken = true;
  }
}

/// Takes a permit, or marks the word as waited. The queue's lock is held.
bool semaphore_core::take_or_mark() noexcept {
  std::int64_t word = word_.load(platform::memory_order_relaxed);
  for (;;) {
    const bool taken = word >= one_permit;
    if (word_.compare_exchange_weak(word, taken ? word - one_permit : word | waited, platform::memory_order_acquire,
                                    platform::memory_order_relaxed)) {
      return taken;
    }
  }
}

void semaphore_core::release_slow(std::ptrdiff_t count, std::ptrdiff_t max) noexcept {
  if (count < 0) {
    misuse("a counting_semaphore is released a negative number of times", this);
  }
  waiter* woken = nullptr;
  waiter** tail = &woken;
  while (count != 0) {
    std::int64_t word = word_.load(platform::memory_order_relaxed);
    if ((word & waited) == 0 && count <= max - word / one_permit) {
      // The last access: a caller that takes the permit may destroy the semaphore.
      if (word_.compare_exchange_weak(word, word + count * one_permit, platform::memory_order_release,
                                      platform::memory_order_relaxed)) {
        break;
      }
      continue;
    }
    waiters_.lock();
    // While the queue holds waiters, other callers may take permits, but none adds any.
    const std::int64_t permits = word_.load(platform::memory_order_relaxed) / one_permit;
    std::int64_t free = 0;
    while (count != 0 && !waiters_.empty()) {
      if (permits + free < owed_ && !lock_waiter::bypass_limit_reached(*waiters_.front())) {
        ++free;  // a woken waiter comes for it
        --count;
        continue;
      }
      waiter* const next = waiters_.claim_first();
      if (next == nullptr) {
        break;
      }
      // The permit of a waiter that is only woken is free meanwhile: in the time that a thread takes to run, a thousand
      // other callers may use it.
      if (lock_waiter::bypass_limit_reached(*next) || runs_here_next(*next)) {
        lock_waiter::grant(*next);
      } else {
        ++free;
        ++owed_;
      }
      *tail = next;
      tail = &next->next;
      --count;
    }
    if (count > max - permits - free + owed_) {
      misuse("a counting_semaphore is released above its maximum", this);
    }
    if (woken != nullptr || owed_ != 0) {
      free += count;  // at once: woken waiters have yet to run, so the semaphore stays, whichever caller takes a permit
      count = 0;
    }
    if (free != 0) {
      word_.fetch_add(free * one_permit, platform::memory_order_release);
    }
    if (waiters_.empty()) {
      word_.fetch_and(~waited, platform::memory_order_relaxed);
    }
    waiters_.unlock();
  }
  *tail = nullptr;
  if (woken != nullptr && woken->next == nullptr) {
    make_runnable(woken->wake.agent());
  } else {
    wait_list::make_all_runnable(woken);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
