// The slow paths of a mutex: spinning, waits, and hand-offs.
#include "pirn/sync/mutex.hpp"

#include "pirn/sync/detail/hand_off_queue.hpp"
#include "pirn/sync/detail/local_domain.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class Domain>
std::expected<void, wait_error> basic_mutex<Domain>::lock_slow(wait_options&& options) noexcept {
  if (lock_if_free_soon()) {
    return {};
  }
  const std::uintptr_t self = owner::caller();
  return hand_off_queue<Domain>(waiters_).wait(
      for_holder<Domain>(options, "local mutex", this->mark()),
      [&] {
        // If the mutex is free and the queue empty, the unlock can be a fast one. (With barging, the queue may hold
        // waiters.)
        const std::uintptr_t mine = waiters_.empty() ? self : self | contended_bit;
        std::uintptr_t holder = owner_.load(platform::memory_order_relaxed);
        while (!owner_.compare_exchange_weak(holder, holder == unlocked ? mine : holder | contended_bit,
                                             platform::memory_order_acquire, platform::memory_order_relaxed)) {
        }
        return holder == unlocked;
      },
      [&](const lock_waiter& me) {
        if (me.owns()) {  // then only the word's upper bit changes meanwhile
          owner_.fetch_add(self - no_fiber, platform::memory_order_relaxed);
          return true;
        }
        return take_handed_off();
      },
      lock_waiter(policy_ == mutex_policy::fair), rule_.order());
}

template <class Domain>
bool basic_mutex<Domain>::lock_if_free_soon() noexcept {
  if constexpr (!Domain::is_local) {
    if (platform::exploring || platform::only_thread()) {
      return false;  // no other thread runs meanwhile
    }
    const fiber_control* const holds = this->owner_mark::owner();
    if (holds != nullptr && holds->home() == current_worker()) {
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
  }
  return false;
}

template <class Domain>
bool basic_mutex<Domain>::take_handed_off() noexcept {
  const std::uintptr_t self = owner::caller();
  std::uintptr_t word = owner_.load(platform::memory_order_relaxed);
  while ((word & ~contended_bit) == handed_off) {
    if (owner_.compare_exchange_weak(word, self | (word & contended_bit), platform::memory_order_acquire,
                                     platform::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

template <class Domain>
void basic_mutex<Domain>::unlock_slow() noexcept {
  for (;;) {
    waiters_.lock();
    const std::uintptr_t self = owner_.load(platform::memory_order_relaxed) & ~contended_bit;
    if (self == unlocked || self == handed_off) {
      misuse<Domain>("unlock() called on a local mutex that is not locked", this);
    }
    hand_off_queue<Domain> queue(waiters_);
    const unlock_decision decision = policy_ == mutex_policy::fair ? queue.hand_off(rule_) : queue.wake_to_retry(rule_);
    if (decision.next != nullptr) {
      // A waiter that owns the mutex has no mark as long as it does not run. One that retries marks the word as
      // contended again before it owns or waits; it is not running yet, so the mutex is still there.
      const std::uintptr_t holder = decision.choose(unlocked, handed_off, no_fiber);
      owner_.store(holder == unlocked || waiters_.empty() ? holder : holder | contended_bit,
                   platform::memory_order_release);
      const placement where = rule_.where();
      waiters_.unlock();
      schedule(*decision.next->wake.agent(), where);
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

template class basic_mutex<shared_domain>;
template class basic_mutex<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
