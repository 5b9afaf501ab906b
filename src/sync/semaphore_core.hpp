// The slow paths of a semaphore: waits, and hand-offs of permits. Templates, since those of a biased semaphore are
// compiled in another library.
#pragma once

#include "pirn/sync/detail/hand_off_queue.hpp"
#include "pirn/sync/semaphore.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class Domain>
void semaphore_core<Domain>::refuse_count() noexcept {
  misuse<Domain>("a local counting_semaphore begins with a count that is negative or above its maximum", this);
}

template <class Domain>
std::expected<void, wait_error> semaphore_core<Domain>::acquire_slow(platform::time_point deadline) noexcept {
  bool woken = false;
  return hand_off_queue<Domain>(waiters_).wait(
      {.deadline = deadline, .what = name_of<Domain>("local semaphore"), .object = this},
      [&] {
        owed_ -= woken ? 1 : 0;
        return take_or_mark();
      },
      [&](const lock_waiter& me) {
        woken = true;
        return me.owns();
      },
      {}, rule_.order());
}

/// Takes a permit, or marks the word as waited. The queue's lock is held.
template <class Domain>
bool semaphore_core<Domain>::take_or_mark() noexcept {
  std::int64_t word = word_.load(platform::memory_order_relaxed);
  for (;;) {
    const bool taken = word >= one_permit;
    if (word_.compare_exchange_weak(word, taken ? word - one_permit : word | waited, platform::memory_order_acquire,
                                    platform::memory_order_relaxed)) {
      return taken;
    }
  }
}

template <class Domain>
void semaphore_core<Domain>::release_slow(std::ptrdiff_t count, std::ptrdiff_t max) noexcept {
  if (count < 0) {
    misuse<Domain>("a local counting_semaphore is released a negative number of times", this);
  }
  const wake_policy wake = rule_.wake();  // the semaphore may be gone when the waiters are woken
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
      const unlock_decision decision = hand_off_queue<Domain>(waiters_).hand_off(rule_);
      waiter* const next = decision.next;
      if (next == nullptr) {
        break;
      }
      // The permit of a waiter that is only woken is free meanwhile: in the time that a thread takes to run, a thousand
      // other callers may use it.
      if (decision.made != unlock_decision::kind::wake_to_retry) {
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
      misuse<Domain>("a local counting_semaphore is released above its maximum", this);
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
    schedule(*woken->wake.agent(), placement_of(wake));
  } else {
    wait_list::schedule_all(woken, wake);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
