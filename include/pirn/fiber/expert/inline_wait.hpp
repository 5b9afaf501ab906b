// Waits whose switch is inlined into the caller, and wake-ups.
#pragma once

#include "pirn/fiber/detail/schedule.hpp"
#include "pirn/fiber/detail/suspend.hpp"

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

  /// Its wait in a list.
  template <class Lock>
  PIRN_ALWAYS_INLINE wake_reason wait(wait_list& list, Lock& lock, wait_kind kind, const wait_options& options,
                                      void* value, std::uintptr_t* word_slot = nullptr) const noexcept {
    waiter_place node;
    list_entry<Lock> entry{list, lock, node, value};
    return suspend(pinned_way{here, word_slot}, *self, kind, options, entry);
  }

  worker* here;
  fiber_control* self = nullptr;  ///< null for any other caller
};
}  // namespace detail

template <class Lock>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_inline(Lock& lock, const wait_options& options, void* value) noexcept {
  const detail::wait_kind kind = detail::kind_of(options);
  const detail::pinned_waiter who(options);
  return who.self != nullptr ? who.wait(*this, lock, kind, options, value) : wait(lock, options, value);
}

template <class Lock, class AcceptWord>
PIRN_ALWAYS_INLINE wake_reason wait_list::wait_inline(Lock& lock, const wait_options& options, void* value,
                                                      std::uintptr_t& word, const AcceptWord& accept_word) noexcept {
  const detail::wait_kind kind = detail::kind_of(options);
  const detail::pinned_waiter who(options);
  if (who.self == nullptr || who.here->suspend_slow_mask->any()) [[unlikely]] {
    return wait(lock, options, value);
  }
  accept_word();
  return who.wait(*this, lock, kind, options, value, &word);
}

/// As `queue.wait(options)`, with the lock of the queue held. In a pinned fiber, if `options` is neither stoppable nor
/// has a deadline, the switch is inlined into the caller. The caller keeps its own values across it and no registers of
/// a function in between: less to save and restore, and a few hundred bytes of code for each call. For waits that
/// suspend most of the time; `options` is best `static constexpr`. Suspension point.
PIRN_ALWAYS_INLINE wake_reason wait_inline(wait_queue& queue, const wait_options& options) noexcept {
  const auto [here, self] = detail::pinned_waiter(options);
  if (self == nullptr || options.stoppable) [[unlikely]] {
    return queue.wait(options);
  }
  detail::waiter_place node;
  detail::list_entry<platform::spinlock, true> entry{queue.list(), queue.own_lock(), node};
  return detail::suspend(detail::pinned_way{here}, *self, detail::wait_kind::single_waker, options, entry);
}

/// As `queue.notify_one_and_unlock()`, but waking a pinned fiber of the same worker is inlined into the caller.
PIRN_ALWAYS_INLINE bool notify_one_inline(wait_queue& queue) noexcept {
  waiter* const chosen = queue.claim_first();
  queue.unlock();
  if (chosen == nullptr) {
    return false;
  }
  detail::schedule_inline(*chosen->wake.agent(), detail::placement::front);
  return true;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
