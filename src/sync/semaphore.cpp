#include "pirn/sync/semaphore.hpp"

#include "pirn/sync/detail/heir.hpp"
#include "sync/hand_over.hpp"
#include "sync/misuse.hpp"

namespace pirn::inline PIRN_ABI::detail {

semaphore_core::semaphore_core(std::ptrdiff_t count, std::ptrdiff_t max) noexcept : word_(count * one_permit) {
  if (count < 0 || count > max) {
    misuse("a counting_semaphore begins with a count that is negative or above its maximum", this);
  }
}

std::expected<void, wait_error> semaphore_core::acquire_slow(platform::time_point deadline) noexcept {
  heir me;
  for (bool woken = false;;) {
    waiters_.lock();
    owed_ -= woken ? 1 : 0;
    if (take_or_mark()) {
      waiter* const next = next_to_try();
      waiters_.unlock();
      if (next != nullptr) {
        make_runnable(next->wake.who());
      }
      return {};
    }
    const wake_reason reason = me.wait(waiters_, {.deadline = deadline, .what = "semaphore", .object = this});
    if (reason != wake_reason::notified) {
      return std::unexpected(error_of(reason));
    }
    if (me.certain()) {
      return {};  // a permit was handed over
    }
    me.lost();
    woken = true;
  }
}

/// Takes a permit, or says that the caller waits. The queue's lock is held.
bool semaphore_core::take_or_mark() noexcept {
  std::int64_t word = word_.load(platform::memory_order_relaxed);
  while (word != waited) {
    const bool none = word == 0;
    if (word_.compare_exchange_weak(word, none ? waited : word - one_permit, platform::memory_order_acquire,
                                    platform::memory_order_relaxed)) {
      return !none;
    }
  }
  return false;
}

/// By one who has taken a permit and may have been woken for it: sees to it that others in the queue are not forgotten.
/// Returns one whom the caller must wake to try too, or null. The queue's lock is held.
waiter* semaphore_core::next_to_try() noexcept {
  std::int64_t word = word_.load(platform::memory_order_relaxed);
  while (word == 0 && !waiters_.empty()) {
    if (word_.compare_exchange_weak(word, waited, platform::memory_order_relaxed)) {
      return nullptr;
    }
  }
  waiter* const next = word >= one_permit ? waiters_.claim_first() : nullptr;
  owed_ += next != nullptr ? 1 : 0;
  return next;
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
      // The last access: whoever takes the permit may destroy the semaphore.
      if (word_.compare_exchange_weak(word, word + count * one_permit, platform::memory_order_release,
                                      platform::memory_order_relaxed)) {
        break;
      }
      continue;
    }
    waiters_.lock();
    word = word_.load(platform::memory_order_relaxed);
    std::int64_t free = 0;
    // A permit of one who is only woken may be taken by others meanwhile: a thread takes as long to run as a thousand
    // of them may need it for.
    for (waiter* w = nullptr; count != 0 && (w = waiters_.claim_first()) != nullptr; --count) {
      if (heir::is_due(*w) || runs_here_next(*w)) {
        heir::make_certain(*w);
      } else {
        ++free;
      }
      *tail = w;
      tail = &w->next;
    }
    owed_ += free;
    if (word == waited) {
      if (free != 0 || waiters_.empty()) {
        word_.store(free * one_permit, platform::memory_order_release);
      }
    } else if (const std::int64_t room = max - word / one_permit; count > room) {
      // Those that were woken, and still use the semaphore, will take as many as they are.
      if (count > room + owed_) {
        misuse("a counting_semaphore is released above its maximum", this);
      }
      word_.fetch_add((free + count) * one_permit, platform::memory_order_release);
      count = 0;
    } else if (free != 0) {
      word_.fetch_add(free * one_permit, platform::memory_order_release);
    }
    waiters_.unlock();
  }
  *tail = nullptr;
  if (woken != nullptr && woken->next == nullptr) {
    make_runnable(woken->wake.who());
  } else {
    wait_list::make_all_runnable(woken);
  }
}

}  // namespace pirn::inline PIRN_ABI::detail
