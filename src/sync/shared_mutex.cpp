// The slow paths of a shared mutex: waits, hand-offs, and the admission of readers.
#include "pirn/sync/shared_mutex.hpp"

#include "sync/hand_off.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

// Stores to the word are releases although its owner may make them: a reader that comes by the fast path afterwards
// must see what the last writer did.

std::uint32_t shared_mutex::contention() const noexcept { return readers_.empty() && writers_.empty() ? 0 : contended; }

// An admitted waiter that runs elsewhere is only woken. The lock is then free, and the first caller to come gets it.
// The word does not say that others wait until a woken waiter marks it, before it owns the lock or waits again.

waiter* shared_mutex::admit_readers() noexcept {
  waiter* const admitted = readers_.claim_all();
  bool elsewhere = false;
  bool limit_reached = false;
  for (const waiter* w = admitted; w != nullptr; w = w->next) {
    elsewhere = elsewhere || !detail::runs_here_next(*w);
    limit_reached = limit_reached || detail::lock_waiter::bypass_limit_reached(*w);
  }
  if (elsewhere && !limit_reached) {
    admitted_.mark_to_retry(admitted);
    word_.store(0, platform::memory_order_release);
  } else if (admitted != nullptr) {
    admit(admitted, 0);
  }
  return admitted;
}

void shared_mutex::admit(const waiter* chain, std::uint32_t readers) noexcept {
  word_.store((readers + admitted_.admit(chain)) * reader | contention(), platform::memory_order_release);
}

waiter* shared_mutex::admit_writer() noexcept {
  waiter* const admitted = writers_.claim_first();
  if (admitted != nullptr) {
    admitted->next = nullptr;
    const bool granted = detail::lock_waiter::try_grant(*admitted);
    std::uint32_t word = 0;
    if (granted || detail::runs_here_next(*admitted)) {
      word = (granted ? writer : writer | handed_off) | contention();
    }
    word_.store(word, platform::memory_order_release);
  }
  return admitted;
}

bool shared_mutex::take_handed_off() noexcept {
  const std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & handed_off) == 0 || (word_.fetch_and(~handed_off, platform::memory_order_acquire) & handed_off) == 0) {
    return false;
  }
  mark_owner();
  return true;
}

bool shared_mutex::take_from_admitted() noexcept {
  std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & writer) != 0) {
    return false;
  }
  const platform::spin_guard guard(lock_);
  // A reader may come or go meanwhile if the queues are empty.
  while ((word & writer) == 0 && admitted_.are_all(word / reader)) {
    if (word_.compare_exchange_weak(word, writer | (word & contended), platform::memory_order_acquire,
                                    platform::memory_order_relaxed)) {
      admitted_.revoke();
      mark_owner();
      return true;
    }
  }
  return false;
}

bool shared_mutex::try_lock_shared_slow() noexcept {
  std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & (writer | handed_off)) == writer) {
    return false;
  }
  const platform::spin_guard guard(lock_);
  if ((word & handed_off) != 0) {
    if ((word_.fetch_and(~handed_off, platform::memory_order_relaxed) & handed_off) == 0) {
      return false;  // another caller was faster
    }
    word_.store(reader | contention(), platform::memory_order_release);
    return true;
  }
  while ((word & writer) == 0 && (writers_.empty() || admitted_.are_all(word / reader))) {
    if (word_.compare_exchange_weak(word, word + reader, platform::memory_order_acquire,
                                    platform::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

std::expected<void, wait_error> shared_mutex::lock_slow(const wait_options& options) noexcept {
  detail::lock_waiter me;
  wake_reason reason;
  for (;;) {
    lock_.lock();
    const std::uint32_t word = word_.fetch_or(contended, platform::memory_order_acquire);
    if ((word & ~contended) == 0) {
      word_.store(writer | contention(), platform::memory_order_release);
      lock_.unlock();
      mark_owner();
      return {};
    }
    reason = me.wait(writers_, lock_, options);
    if (reason != wake_reason::notified) {
      break;
    }
    if (me.owns()) {
      mark_owner();
      return {};
    }
    if (take_handed_off()) {
      return {};
    }
    me.count_bypass();
  }
  // Readers may have waited because of this caller.
  lock_.lock();
  waiter* admitted = nullptr;
  const std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & (writer | contended)) == contended && writers_.empty()) {
    admitted = readers_.claim_all();
    admit(admitted, word / reader);
  }
  lock_.unlock();
  wait_list::make_all_runnable(admitted);
  return std::unexpected(detail::error_of(reason));
}

std::expected<void, wait_error> shared_mutex::lock_shared_slow(const wait_options& options) noexcept {
  detail::lock_waiter me;
  lock_.lock();
  for (;;) {
    // A free lock is for any caller, even if a writer waits: another waiter was woken and has not run yet.
    if (const std::uint32_t word = word_.fetch_or(contended, platform::memory_order_acquire);
        (word & ~contended) == 0 || ((word & writer) == 0 && writers_.empty())) {
      word_.store((word / reader + 1) * reader | contention(), platform::memory_order_release);
      break;
    }
    if (const wake_reason reason = me.wait(readers_, lock_, options); reason != wake_reason::notified) {
      return std::unexpected(detail::error_of(reason));
    }
    lock_.lock();
    if (admitted_.confirm(me)) {
      break;
    }
  }
  lock_.unlock();
  return {};
}

void shared_mutex::unlock_slow() noexcept {
  for (;;) {
    lock_.lock();
    const std::uint32_t word = word_.load(platform::memory_order_acquire);
    if ((word & (writer | handed_off)) != writer) {
      detail::misuse("unlock() called on a shared_mutex that is not locked for writing", this);
    }
    waiter* admitted = nullptr;
    if ((word & contended) != 0) {
      admitted = admit_readers();
      if (admitted == nullptr) {
        admitted = admit_writer();
      }
      if (admitted == nullptr) {
        word_.store(writer, platform::memory_order_relaxed);
      }
    }
    lock_.unlock();
    if (admitted != nullptr) {
      wait_list::make_all_runnable(admitted);
      return;
    }
    // Once the word says unlocked, another owner may destroy the mutex: that must be the last access.
    std::uint32_t expected = writer;
    if (word_.compare_exchange_strong(expected, 0, platform::memory_order_release, platform::memory_order_relaxed)) {
      return;
    }
  }
}

void shared_mutex::unlock_shared_slow() noexcept {
  for (;;) {
    lock_.lock();
    std::uint32_t word = word_.load(platform::memory_order_acquire);
    if (word < reader) {
      detail::misuse("unlock_shared() called on a shared_mutex that is not locked for reading", this);
    }
    waiter* admitted = nullptr;
    if ((word & contended) != 0) {
      if (word / reader > 1) {
        word_.store(word - reader, platform::memory_order_release);
        lock_.unlock();
        return;
      }
      admitted = admit_writer();
      if (admitted == nullptr) {
        admitted = admit_readers();
      }
      if (admitted == nullptr) {
        word_.store(word = reader, platform::memory_order_relaxed);
      }
    }
    lock_.unlock();
    if (admitted != nullptr) {
      wait_list::make_all_runnable(admitted);
      return;
    }
    // The last access, as in `unlock_slow`.
    while ((word & contended) == 0) {
      if (word_.compare_exchange_weak(word, word - reader, platform::memory_order_release,
                                      platform::memory_order_relaxed)) {
        return;
      }
    }
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
