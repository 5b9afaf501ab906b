// Waits whose switch is a part of the caller, and wake-ups.
#pragma once

#include "pirn/fiber/detail/worker.hpp"

namespace pirn::inline PIRN_ABI {

template <class Lock, class Suspend>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_by(detail::agent& self, Lock& lock, detail::wait_kind kind, void* value,
                                                  const Suspend& suspend, bool opens_later) noexcept {
  std::uint64_t epoch = 0;
  if (!self.begin(kind, epoch, opens_later)) [[unlikely]] {
    lock.unlock();
    return self.stop_reason();
  }
  waiter node{.wake = waker(self, epoch), .value = value};
  append(node);
  suspend(epoch);
  return node.claimed ? wake_reason::notified : leave(self, lock, node);
}

template <class Lock>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_pinned(detail::worker* here, detail::fiber_control& self, Lock& lock,
                                                      detail::wait_kind kind, const wait_options& options,
                                                      void* value) noexcept {
  return wait_by(
      self, lock, kind, value,
      [&](std::uint64_t epoch) __attribute__((always_inline)) {
        detail::suspend_pinned(here, self, epoch, kind, options, [&lock] { lock.unlock(); });
      },
      true);
}

template <class Lock>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_inline(Lock& lock, const wait_options& options, void* value) noexcept {
  // Before the compiler must assume that they have changed.
  const bool timed = options.deadline != platform::never;
  const detail::wait_kind kind = detail::kind_of(options);
  detail::worker* const here = detail::current_worker();
  if (here == nullptr || timed) [[unlikely]] {
    return wait(lock, options, value);
  }
  detail::fiber_control& self = *detail::running_fiber(here);
  return self.is_pinned_to(here) ? wait_pinned(here, self, lock, kind, options, value) : wait(lock, options, value);
}

template <class Lock, class Carries>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_inline(Lock& lock, const wait_options& options, void* value,
                                                      std::uintptr_t& word, const Carries& carries) noexcept {
  const bool timed = options.deadline != platform::never;
  const detail::wait_kind kind = detail::kind_of(options);
  detail::worker* const here = detail::current_worker();
  if (here == nullptr || timed) [[unlikely]] {
    return wait(lock, options, value);
  }
  detail::fiber_control& self = *detail::running_fiber(here);
  if (!self.is_pinned_to(here) || here->exceptions->any()) [[unlikely]] {
    return wait(lock, options, value);
  }
  carries();
  arch::word carried = 0;
  const wake_reason reason = wait_by(self, lock, kind, value, [&](std::uint64_t epoch) __attribute__((always_inline)) {
    detail::suspend_pinned(here, self, epoch, kind, options, [&lock] { lock.unlock(); }, &carried);
  });
  word = carried;
  return reason;
}

namespace detail {

/// Runs `who`, whose wait the caller has claimed and who waits where a word can be given, in place of the caller, which
/// goes behind all that are ready: a suspension point. False if that is not for now; then nothing has happened.
PIRN_ALWAYS_INLINE bool switch_over_giving(agent* who, std::uintptr_t word) noexcept {
  worker* const here = current_worker();
  if (here == nullptr || who->what() != agent::kind::fiber || !static_cast<fiber_control*>(who)->is_pinned_to(here) ||
      here->switches_left == 0 || !here->queue.may_overtake() || here->exceptions->any()) {
    return false;
  }
  --here->switches_left;
  run_node* const self = here->queue.running();
  auto* const next = static_cast<fiber_control*>(who);
  here->queue.hand_over(next);
  arch::word carried = word;
  switch_carrying(here, self, next, carried);
  return true;
}

/// As `make_runnable`, with what a pinned fiber of this worker needs in the caller.
PIRN_ALWAYS_INLINE void make_runnable_inline(agent* who) noexcept {
  worker* const here = current_worker();
  if (who->what() == agent::kind::fiber && static_cast<fiber_control*>(who)->is_pinned_to(here)) [[likely]] {
    here->queue.push_woken(static_cast<fiber_control*>(who));
  } else {
    make_runnable(who);
  }
}

}  // namespace detail

/// As `queue.wait(how)`, with the lock of the queue held. In a pinned fiber, where `how` is neither stoppable nor has a
/// deadline, the switch is in the caller, which keeps across it what it needs itself and no registers of a function in
/// between: less to save and restore, and a few hundred bytes of code for each call. For what waits most of the time;
/// `how` is best `static constexpr`. Suspension point.
PIRN_ALWAYS_INLINE wake_reason wait_inline(wait_queue& queue, const wait_options& how) noexcept {
  detail::worker* const here = detail::current_worker();
  if (detail::kind_of(how) != detail::wait_kind::sole || here == nullptr) [[unlikely]] {
    return queue.wait(how);
  }
  detail::fiber_control& self = *detail::running_fiber(here);
  if (!self.is_pinned_to(here)) [[unlikely]] {
    return queue.wait(how);
  }
  std::uint64_t epoch = 0;
  static_cast<void>(self.begin(detail::wait_kind::sole, epoch));  // which no stop refuses
  waiter node;
  node.wake = waker(self, epoch);
  queue.enter(node);
  detail::suspend_pinned(here, self, epoch, detail::wait_kind::sole, how, [&queue] { queue.unlock(); });
  return wake_reason::notified;
}

/// As `queue.notify_one_and_unlock()`, in the caller as far as it wakes a pinned fiber of the same worker.
PIRN_ALWAYS_INLINE bool notify_one_inline(wait_queue& queue) noexcept {
  waiter* const chosen = queue.claim_first();
  queue.unlock();
  if (chosen == nullptr) {
    return false;
  }
  detail::make_runnable_inline(chosen->wake.who());
  return true;
}

}  // namespace pirn::inline PIRN_ABI
