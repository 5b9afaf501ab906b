// Waits whose switch is inlined into the caller, and wake-ups.
#pragma once

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
/// The calling fiber, if it is pinned to its worker and its wait has no deadline: then nothing else affects its switch.
struct pinned_waiter {
  PIRN_ALWAYS_INLINE explicit pinned_waiter(const wait_options& options) noexcept {
    // First, before the compiler must assume that the options have changed.
    const bool endless = options.deadline == platform::never;
    here = current_worker();
    if (endless && here != nullptr) [[likely]] {
      fiber_control* const running = running_fiber(here);
      self = running->is_pinned_to(here) ? running : nullptr;
    }
  }

  worker* here;
  fiber_control* self = nullptr;  ///< null for any other caller
};
}  // namespace detail

template <class Lock, class Suspend>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_impl(detail::agent& self, Lock& lock, detail::wait_kind kind,
                                                    void* value, const Suspend& suspend, bool opens_later,
                                                    placement where) noexcept {
  std::uint64_t epoch = 0;
  if (!self.begin(kind, epoch, opens_later)) [[unlikely]] {
    lock.unlock();
    return self.stop_reason();
  }
  waiter node{.wake = waker(self, epoch), .value = value};
  where == placement::back ? append(node) : prepend(node);
  suspend(epoch);
  return node.claimed ? wake_reason::notified : remove_after_wait(self, lock, node);
}

template <class Lock>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_pinned(detail::worker* here, detail::fiber_control& self, Lock& lock,
                                                      detail::wait_kind kind, const wait_options& options, void* value,
                                                      std::uintptr_t* word_slot) noexcept {
  return wait_impl(
      self, lock, kind, value,
      [&](std::uint64_t epoch) __attribute__((always_inline)) {
        detail::suspend_pinned(here, self, epoch, kind, options, [&lock] { lock.unlock(); }, word_slot);
      },
      true);
}

template <class Lock>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_inline(Lock& lock, const wait_options& options, void* value) noexcept {
  const detail::wait_kind kind = detail::kind_of(options);
  const auto [here, self] = detail::pinned_waiter(options);
  return self != nullptr ? wait_pinned(here, *self, lock, kind, options, value) : wait(lock, options, value);
}

template <class Lock, class AcceptWord>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_inline(Lock& lock, const wait_options& options, void* value,
                                                      std::uintptr_t& word, const AcceptWord& accept_word) noexcept {
  const detail::wait_kind kind = detail::kind_of(options);
  const auto [here, self] = detail::pinned_waiter(options);
  if (self == nullptr || here->suspend_slow_mask->any()) [[unlikely]] {
    return wait(lock, options, value);
  }
  accept_word();
  return wait_pinned(here, *self, lock, kind, options, value, &word);
}

namespace detail {

/// Runs `who` in place of the caller, which goes behind all ready fibers: a suspension point. The caller has claimed
/// the wait of `who`, and that must be one that can receive a word. False if a rule of the scheduler or exceptions in
/// flight forbid the switch; then nothing has happened.
PIRN_ALWAYS_INLINE bool switch_to_with_value(agent* who, std::uintptr_t given) noexcept {
  worker* const here = current_worker();
  fiber_control* const next = here != nullptr ? pinned_fiber(who, here) : nullptr;
  if (next == nullptr || here->budget_left == 0 || !here->queue.may_overtake() || here->suspend_slow_mask->any()) {
    return false;
  }
  --here->budget_left;
  run_node* const self = here->queue.running();
  here->queue.hand_over(next);
  static_cast<void>(switch_started(here, self, next, nullptr, &given));
  return true;
}

/// As `make_runnable`, but the part for a pinned fiber of this worker is inlined into the caller.
PIRN_ALWAYS_INLINE void make_runnable_inline(agent* who) noexcept {
  worker* const here = current_worker();
  if (fiber_control* const f = pinned_fiber(who, here)) [[likely]] {
    here->queue.push_woken(f);
  } else {
    make_runnable(who);
  }
}

}  // namespace detail

/// As `queue.wait(options)`, with the lock of the queue held. In a pinned fiber, if `options` is neither stoppable nor
/// has a deadline, the switch is inlined into the caller. The caller keeps its own values across it and no registers of
/// a function in between: less to save and restore, and a few hundred bytes of code for each call. For waits that
/// suspend most of the time; `options` is best `static constexpr`. Suspension point.
PIRN_ALWAYS_INLINE wake_reason wait_inline(wait_queue& queue, const wait_options& options) noexcept {
  const auto [here, self] = detail::pinned_waiter(options);
  if (self == nullptr || options.stoppable) [[unlikely]] {
    return queue.wait(options);
  }
  std::uint64_t epoch = 0;
  static_cast<void>(self->begin(detail::wait_kind::single_waker, epoch));  // no stop refuses this wait
  waiter node;
  node.wake = waker(*self, epoch);
  queue.append(node);
  detail::suspend_pinned(here, *self, epoch, detail::wait_kind::single_waker, options, [&queue] { queue.unlock(); });
  return wake_reason::notified;
}

/// As `queue.notify_one_and_unlock()`, but waking a pinned fiber of the same worker is inlined into the caller.
PIRN_ALWAYS_INLINE bool notify_one_inline(wait_queue& queue) noexcept {
  waiter* const chosen = queue.claim_first();
  queue.unlock();
  if (chosen == nullptr) {
    return false;
  }
  detail::make_runnable_inline(chosen->wake.agent());
  return true;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
