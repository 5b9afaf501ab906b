#include "pirn/sync/semaphore.hpp"

#include "sync/misuse.hpp"

namespace pirn::inline PIRN_ABI::detail {

semaphore_core::semaphore_core(std::ptrdiff_t count, std::ptrdiff_t max) noexcept : word_(count * one_permit) {
  if (count < 0 || count > max) {
    misuse("a counting_semaphore begins with a count that is negative or above its maximum", this);
  }
}

std::expected<void, wait_error> semaphore_core::acquire_slow(platform::time_point deadline) noexcept {
  waiters_.lock();
  std::int64_t word = word_.load(platform::memory_order_relaxed);
  while (word != waited) {
    if (word == 0) {
      if (word_.compare_exchange_weak(word, waited, platform::memory_order_relaxed)) {
        break;
      }
    } else if (word_.compare_exchange_weak(word, word - one_permit, platform::memory_order_acquire,
                                           platform::memory_order_relaxed)) {
      waiters_.unlock();
      return {};
    }
  }
  const wake_reason reason = waiters_.wait({.deadline = deadline, .what = "semaphore", .object = this});
  if (reason != wake_reason::notified) {
    return std::unexpected(error_of(reason));
  }
  return {};  // a permit was handed over
}

void semaphore_core::release_slow(std::ptrdiff_t count, std::ptrdiff_t max) noexcept {
  if (count < 0) {
    misuse("a counting_semaphore is released a negative number of times", this);
  }
  waiter* woken = nullptr;
  waiter** tail = &woken;
  while (count != 0) {
    std::int64_t word = word_.load(platform::memory_order_relaxed);
    if ((word & waited) == 0) {
      if (count > max - word / one_permit) {
        misuse("a counting_semaphore is released above its maximum", this);
      }
      // The last access: whoever takes the permit may destroy the semaphore.
      if (word_.compare_exchange_weak(word, word + count * one_permit, platform::memory_order_release,
                                      platform::memory_order_relaxed)) {
        break;
      }
      continue;
    }
    waiters_.lock();
    if (word_.load(platform::memory_order_relaxed) == waited) {
      for (waiter* w = nullptr; count != 0 && (w = waiters_.claim_first()) != nullptr; --count) {
        *tail = w;
        tail = &w->next;
      }
      if (waiters_.empty()) {
        word_.store(0, platform::memory_order_relaxed);
      }
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
