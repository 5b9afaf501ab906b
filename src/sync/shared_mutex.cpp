// The slow paths of a shared mutex: waits, hand-offs, and the admission of readers.
#include "pirn/sync/shared_mutex.hpp"

#include "pirn/sync/detail/hand_off_queue.hpp"
#include "pirn/sync/detail/local_domain.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

// Stores to the word are releases although its owner may make them: a reader that comes by the fast path afterwards
// must see what the last writer did.

template <class Domain>
std::uint32_t basic_shared_mutex<Domain>::contention() const noexcept {
  return readers_.empty() && writers_.empty() ? 0 : contended;
}

// An admitted waiter that runs elsewhere is only woken. The lock is then free, and the first caller to come gets it.
// The word does not say that others wait until a woken waiter marks it, before it owns the lock or waits again.

template <class Domain>
waiter* basic_shared_mutex<Domain>::admit_readers() noexcept {
  waiter* const admitted = readers_.claim_all();
  if (hand_off_queue<Domain>::are_to_retry(admitted)) {
    admitted_.mark_to_retry(admitted);
    word_.store(0, platform::memory_order_release);
  } else if (admitted != nullptr) {
    admit(admitted, 0);
  }
  return admitted;
}

template <class Domain>
void basic_shared_mutex<Domain>::admit(const waiter* chain, std::uint32_t readers) noexcept {
  word_.store((readers + admitted_.admit(chain)) * reader | contention(), platform::memory_order_release);
}

template <class Domain>
waiter* basic_shared_mutex<Domain>::admit_writer() noexcept {
  const unlock_decision decision = hand_off_queue<Domain>(writers_).hand_off();
  if (decision.next != nullptr) {
    const std::uint32_t word = decision.choose(0U, writer | handed_off, writer);
    word_.store(word == 0 ? 0 : word | contention(), platform::memory_order_release);
  }
  return decision.next;
}

template <class Domain>
bool basic_shared_mutex<Domain>::take_handed_off() noexcept {
  const std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & handed_off) == 0 || (word_.fetch_and(~handed_off, platform::memory_order_acquire) & handed_off) == 0) {
    return false;
  }
  this->mark_owner();
  return true;
}

template <class Domain>
bool basic_shared_mutex<Domain>::take_from_admitted() noexcept {
  std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & writer) != 0) {
    return false;
  }
  const platform::spin_guard guard(writers_);
  // A reader may come or go meanwhile if the queues are empty.
  while ((word & writer) == 0 && admitted_.are_all(word / reader)) {
    if (word_.compare_exchange_weak(word, writer | (word & contended), platform::memory_order_acquire,
                                    platform::memory_order_relaxed)) {
      admitted_.revoke();
      this->mark_owner();
      return true;
    }
  }
  return false;
}

template <class Domain>
bool basic_shared_mutex<Domain>::try_lock_shared_slow() noexcept {
  std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & (writer | handed_off)) == writer) {
    return false;
  }
  const platform::spin_guard guard(writers_);
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

template <class Domain>
std::expected<void, wait_error> basic_shared_mutex<Domain>::lock_slow(wait_options&& options) noexcept {
  const auto locked = hand_off_queue<Domain>(writers_).wait(
      for_holder<Domain>(options, "local shared_mutex, to write", this->mark()),
      [&] {
        const std::uint32_t word = word_.fetch_or(contended, platform::memory_order_acquire);
        if ((word & ~contended) != 0) {
          return false;
        }
        word_.store(writer | contention(), platform::memory_order_release);
        return true;
      },
      [&](const lock_waiter& me) { return me.owns() || take_handed_off(); });
  if (locked) {
    this->mark_owner();
    return {};
  }
  // Readers may have waited because of this caller.
  writers_.lock();
  waiter* admitted = nullptr;
  const std::uint32_t word = word_.load(platform::memory_order_relaxed);
  if ((word & (writer | contended)) == contended && writers_.empty()) {
    admitted = readers_.claim_all();
    admit(admitted, word / reader);
  }
  writers_.unlock();
  wait_list::schedule_all(admitted);
  return locked;
}

template <class Domain>
std::expected<void, wait_error> basic_shared_mutex<Domain>::lock_shared_slow(wait_options&& options) noexcept {
  return hand_off_queue<Domain>(writers_.own_lock(), readers_)
      .wait(
          for_holder<Domain>(options, "local shared_mutex, to read", this->mark()),
          [&] {
            // A free lock is for any caller, even if a writer waits: another waiter was woken and has not run yet.
            const std::uint32_t word = word_.fetch_or(contended, platform::memory_order_acquire);
            if ((word & ~contended) != 0 && ((word & writer) != 0 || !writers_.empty())) {
              return false;
            }
            word_.store((word / reader + 1) * reader | contention(), platform::memory_order_release);
            return true;
          },
          [&](const lock_waiter& me) {
            const platform::spin_guard guard(writers_);
            return admitted_.confirm(me);
          });
}

template <class Domain>
void basic_shared_mutex<Domain>::unlock_slow() noexcept {
  for (;;) {
    writers_.lock();
    const std::uint32_t word = word_.load(platform::memory_order_acquire);
    if ((word & (writer | handed_off)) != writer) {
      misuse<Domain>("unlock() called on a local shared_mutex that is not locked for writing", this);
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
    writers_.unlock();
    if (admitted != nullptr) {
      wait_list::schedule_all(admitted);
      return;
    }
    // Once the word says unlocked, another owner may destroy the mutex: that must be the last access.
    std::uint32_t expected = writer;
    if (word_.compare_exchange_strong(expected, 0, platform::memory_order_release, platform::memory_order_relaxed)) {
      return;
    }
  }
}

template <class Domain>
void basic_shared_mutex<Domain>::unlock_shared_slow() noexcept {
  for (;;) {
    writers_.lock();
    std::uint32_t word = word_.load(platform::memory_order_acquire);
    if (word < reader) {
      misuse<Domain>("unlock_shared() called on a local shared_mutex that is not locked for reading", this);
    }
    waiter* admitted = nullptr;
    if ((word & contended) != 0) {
      if (word / reader > 1) {
        word_.store(word - reader, platform::memory_order_release);
        writers_.unlock();
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
    writers_.unlock();
    if (admitted != nullptr) {
      wait_list::schedule_all(admitted);
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

template class basic_shared_mutex<shared_domain>;
template class basic_shared_mutex<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
