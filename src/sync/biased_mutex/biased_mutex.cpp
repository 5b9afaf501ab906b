// The slow paths of a biased mutex: waits, hand-offs, and the revocation of the bias.
#include "pirn/sync/expert/biased_mutex.hpp"

#include "fiber/runtime_state.hpp"
#include "pirn/fiber/this_fiber.hpp"
#include "pirn/sync/detail/hand_off_queue.hpp"
#include "sync/biased_mutex/bias.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

using hand_offs = detail::hand_off_queue<detail::shared_domain>;

}  // namespace

std::expected<void, wait_error> biased_mutex::lock_slow(wait_options&& options) noexcept {
  // A move takes as long as the other worker takes to switch, which no deadline ends.
  const bool moved = options.deadline == platform::never && go_to_its_worker();
  if (moved) {
    const platform::spin_guard guard(waiters_);
    unbias_here();
  }
  return hand_offs(waiters_).wait(
      detail::for_holder<detail::shared_domain>(options, "local biased mutex", mark()),
      [&] {
        if (take()) {
          return true;
        }
        if (is_biased(bias_.load(platform::memory_order_relaxed)) &&
            flag_.load(platform::memory_order_relaxed) != handed_off) {
          flag_.store(contended, platform::memory_order_relaxed);
        }
        return false;
      },
      [&](const detail::lock_waiter& me) {
        if (me.owns()) {
          return true;
        }
        const platform::spin_guard guard(waiters_);
        return take_handed_off();
      });
}

bool biased_mutex::try_lock_slow() noexcept {
  if (bias_.load(platform::memory_order_relaxed) == shared &&
      word_.load(platform::memory_order_relaxed) != handed_off) {
    return false;
  }
  const platform::spin_guard guard(waiters_);
  return take() || take_handed_off();
}

/// Takes a lock that is handed off. The queue's lock is held.
bool biased_mutex::take_handed_off() noexcept {
  auto& state = bias_.load(platform::memory_order_relaxed) == shared ? word_ : flag_;
  const bool handed = state.load(platform::memory_order_acquire) == handed_off;
  if (handed) {
    state.store(waiters_.empty() ? taken : contended, platform::memory_order_relaxed);
  }
  return handed;
}

/// Moves a migratable fiber to the worker that the lock is biased towards, if that is another one of its runtime. The
/// worker's address is only compared: the worker may be gone.
bool biased_mutex::go_to_its_worker() const noexcept {
  const detail::worker* const here = detail::current_worker();
  if (here == nullptr || !detail::running_fiber(here)->migratable()) {
    return false;
  }
  const std::uintptr_t bias = bias_.load(platform::memory_order_relaxed);
  for (const auto& each : here->owner.workers) {
    if (each.get() != here && reinterpret_cast<std::uintptr_t>(each.get()) == bias) {
      return this_fiber::migrate_to(each->index).has_value();
    }
  }
  return false;
}

/// Ends the bias. Called by a fiber of the worker that the lock is biased towards, if it still is: no other fiber can
/// be in the middle of `lock_here` or `unlock`. The queue's lock is held, as in `take`.
void biased_mutex::unbias_here() noexcept {
  if (bias_.load(platform::memory_order_relaxed) == this_worker()) {
    if (const std::uint8_t flag = flag_.load(platform::memory_order_acquire); flag != free) {
      word_.store(flag == handed_off ? handed_off : contended, platform::memory_order_relaxed);
    }
    bias_.store(shared, platform::memory_order_release);
  }
}

/// Takes the lock if it is free, whatever its state. A call from another worker or thread begins a revocation.
bool biased_mutex::take() noexcept {
  const std::uintptr_t here = this_worker();
  std::uintptr_t bias = bias_.load(platform::memory_order_relaxed);
  if (bias == nobody) {
    bias = here != 0 && detail::bias_pays() ? here : shared;
    bias_.store(bias, platform::memory_order_relaxed);
  } else if (is_biased(bias) && bias != here) {
    bias |= revoking;
    bias_.store(bias, platform::memory_order_relaxed);
    platform::heavy_fence();  // pairs with the light fences of the owner
  }
  if (bias != shared) {
    if (flag_.load(platform::memory_order_acquire) != free) {
      // With a revocation under way, either the owner finds it when it unlocks, or a fiber in the middle of lock_here
      // or unlock finds it and gives way.
      return false;
    }
    if (bias == here) {
      flag_.store(taken, platform::memory_order_relaxed);
      return true;
    }
    bias_.store(shared, platform::memory_order_release);
  }
  std::uint8_t word = word_.load(platform::memory_order_relaxed);
  while (word != handed_off && !word_.compare_exchange_weak(word, contended, platform::memory_order_acquire,
                                                            platform::memory_order_relaxed)) {
  }
  if (word != free) {
    return false;
  }
  if (waiters_.empty()) {
    word_.store(taken, platform::memory_order_relaxed);
  }
  return true;
}

/// Makes the first waiter the owner, as `state` then says, or leaves the lock free for it and for callers that come
/// before it runs. Returns that waiter, or null. The caller must make it runnable.
waiter* biased_mutex::hand_off(platform::atomic<std::uint8_t>& state) noexcept {
  const detail::unlock_decision decision = hand_offs(waiters_).hand_off();
  std::uint8_t kept = free;
  if (decision.next != nullptr) {
    // Free with others still in the queue: the waiter marks the word as contended again before it owns or waits.
    const std::uint8_t to_retry = &state == &flag_ ? handed_off : free;
    kept = decision.choose(to_retry, handed_off, waiters_.empty() ? taken : contended);
  }
  state.store(kept, platform::memory_order_release);
  return decision.next;
}

/// Called by the lock's worker, which has just taken its flag down and found a revocation, maybe one that is already
/// over.
void biased_mutex::give_way() noexcept {
  waiters_.lock();
  waiter* next = nullptr;
  if (bias_.load(platform::memory_order_relaxed) != shared) {
    next = hand_off(word_);
    bias_.store(shared, platform::memory_order_release);
  }
  waiters_.unlock();
  if (next != nullptr) {
    detail::schedule(*next->wake.agent(), detail::placement::front);
  }
}

void biased_mutex::unlock_slow() noexcept {
  waiters_.lock();
  const std::uintptr_t bias = bias_.load(platform::memory_order_relaxed);
  if (const std::uint8_t state = (bias == shared ? word_ : flag_).load(platform::memory_order_relaxed);
      state == free || state == handed_off) {
    detail::misuse<detail::shared_domain>("unlock() called on a biased mutex that is not locked", this);
  }
  waiter* const next = hand_off(is_biased(bias) ? flag_ : word_);
  if (!is_biased(bias)) {
    bias_.store(shared, platform::memory_order_release);
  }
  waiters_.unlock();
  if (next != nullptr) {
    detail::schedule(*next->wake.agent(), detail::placement::front);
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
