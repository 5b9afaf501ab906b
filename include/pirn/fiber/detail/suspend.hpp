// The suspend: every wait begins, switches away and ends here.
#pragma once

#include "pirn/fiber/detail/wait_record.hpp"
#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Takes the running fiber off the run queue; returns the next to run. If the fiber is pinned it may be made ready from
/// here on, since only this worker resumes it, and that is still here.
PIRN_ALWAYS_INLINE run_node* leave_run_queue(worker* w, const wait_options& what) noexcept {
  run_node* const self = w->queue.running();
  run_node* const next = w->consume_budget() ? w->queue.leave_to_scheduler() : w->queue.leave();
  self->waits = &what;
  return next;
}
/// Switches from `self`, which has left the queue, to `next`, until `self` is made ready again; `publish`, if any, runs
/// once it is off.
PIRN_ALWAYS_INLINE worker* switch_away(worker* w, run_node* self, run_node* next,
                                       post_switch_action* publish) noexcept {
  if (w->suspend_slow_mask->any()) [[unlikely]] {
    return switch_with_exceptions(w, self, next, publish);
  }
  return switch_nodes(w, self, next, publish);
}
/// Leaves the run queue and switches to the next ready node: the switch of a fiber that other workers may resume.
PIRN_ALWAYS_INLINE worker* switch_out(worker* w, const wait_options& what, post_switch_action* publish) noexcept {
  run_node* const self = w->queue.running();
  run_node* const next = w->or_stealable(leave_run_queue(w, what));
  return switch_away(w, self, next, publish);
}

/// Set and cancel the deadline of a wait of a bounded fiber. They work on the worker's stack.
timer* arm_for_bounded(worker* w, fiber_control& self, std::uint64_t epoch, const wait_options& what) noexcept;
void cancel_for_bounded(worker* w, timer* limit) noexcept;

/// The way of a fiber that only `here` resumes: it publishes its wait before the switch, which is inlined into the
/// caller. With a `word_slot`, allowed only if no exceptions are in flight and the slow path is not forced, the waker
/// may give it that word. A fiber with a bounded stack goes in few and small frames, since it has this much less for
/// itself; for any other one `suspend` must be given no deadline.
template <bool Bounded>
struct local_way {
  static constexpr bool opens_later = true;
  worker* here;
  arch::word* word_slot = nullptr;

  template <class Entries>
  PIRN_ALWAYS_INLINE void publish_and_switch(const wait_record& wait, Entries&& entries) const noexcept {
    worker* const w = here;
    auto& self = static_cast<fiber_control&>(wait.self);
    timer* limit = nullptr;  // on the heap: on the stack it would count for waits without a deadline too
    if (Bounded && wait.options.deadline != platform::never) {
      limit = arm_for_bounded(w, self, wait.epoch, wait.options);
    }
    run_node* next;
    if (w->consume_budget()) [[unlikely]] {
      next = w->queue.leave_to_scheduler();
    } else if (next = w->queue.leave_to_woken(); next == nullptr) {
      next = w->queue.leave_to_others();
      next = Bounded ? next : w->or_stealable(next);
    }
    self.waits = &wait.options;
    if (wait.kind == wait_kind::stoppable && self.open_to_stop(wait.epoch)) [[unlikely]] {
      w->queue.push_woken(&self);
    }
    entries.publisher()();
    if constexpr (Bounded) {
      switch_bounded(w, &self, next, nullptr, &wait.options);
      if (limit != nullptr) {
        cancel_for_bounded(w, limit);
      }
    } else {
      static_cast<void>(word_slot != nullptr ? switch_nodes(w, &self, next, nullptr, word_slot)
                                             : switch_away(w, &self, next, nullptr));
    }
  }
};
using pinned_way = local_way<false>;
using bounded_way = local_way<true>;

/// Returns whether the running fiber of `here` may wait and run a fiber that it has woken at once, with a word: neither
/// a rule of the scheduler nor exceptions in flight forbid it.
[[nodiscard]] PIRN_ALWAYS_INLINE bool may_leave_with_word(worker* here) noexcept {
  return here->budget.left() != 0 && here->queue.may_leave_to_claimed() && !here->suspend_slow_mask->any();
}

/// The way of a pinned fiber that runs `next` in its place and gives it `*word`, where its own waker may give it one
/// too: `next` is a fiber of `here` whose wait the caller has claimed, and that can receive a word. Only if the caller
/// `may_leave_with_word`.
struct calling_way {
  static constexpr bool opens_later = true;
  worker* here;
  fiber_control* next;
  arch::word* word;
  bool* switched;

  template <class Entries>
  PIRN_ALWAYS_INLINE void publish_and_switch(const wait_record& wait, Entries&& entries) const noexcept {
    worker* const w = here;
    auto& self = static_cast<fiber_control&>(wait.self);
    static_cast<void>(w->consume_budget());
    w->queue.leave_to_claimed(next);
    self.waits = &wait.options;
    if (wait.kind == wait_kind::stoppable && self.open_to_stop(wait.epoch)) [[unlikely]] {
      w->queue.push_woken(&self);
    }
    *switched = true;
    entries.publisher()();
    static_cast<void>(switch_started(w, &self, next, nullptr, word));
  }
};

/// Suspends an agent of any kind, whose wait has begun, until it is claimed; `publish` runs once it is switched out.
/// Its stack use has no bound, so the compiler plugin refuses a bounded fiber that might get here. For a chain of
/// tasks, whose awaiter has the timer `limit`, this returns at once: the awaiter lets the chain return to its resumer,
/// and cancels the timer when the chain runs again.
void suspend_slow(const wait_record& wait, post_switch_action& publish, timer* limit = nullptr) noexcept;

/// The way of all others.
struct slow_way {
  static constexpr bool opens_later = false;

  template <class Entries>
  PIRN_ALWAYS_INLINE void publish_and_switch(const wait_record& wait, Entries&& entries) const noexcept {
    publish_action publish(entries.publisher());
    suspend_slow(wait, publish);
  }
};

/// Begins the wait and appends its entries. False if a stop refuses it.
template <bool OpensLater, class Entries>
PIRN_ALWAYS_INLINE bool begin_wait(agent& self, wait_kind kind, std::uint64_t& epoch, Entries& entries) noexcept {
  static_assert(wait_entries<Entries>);  // no constraint, since gdb 13 cannot read the names of constrained functions
  if (!self.begin(kind, epoch, OpensLater)) [[unlikely]] {
    entries.unlock_unpublished();
    return false;
  }
  entries.append(waker(self, epoch));
  return true;
}

/// Suspends the calling fiber or thread until one of the entries, the deadline or a stop ends the wait. Returns why it
/// ended.
template <class Way, class Entries>
PIRN_ALWAYS_INLINE wake_reason suspend(const Way& way, agent& self, wait_kind kind, const wait_options& options,
                                       Entries& entries) noexcept {
  std::uint64_t epoch = 0;
  if (!begin_wait<Way::opens_later>(self, kind, epoch, entries)) [[unlikely]] {
    return self.stop_reason();
  }
  const wait_record wait{self, options, kind, epoch};
  way.publish_and_switch(wait, entries);
  return entries.remove_after_wait(self);
}
/// As the overload above, by the slow way. Not for bounded fibers.
template <class Entries>
PIRN_ALWAYS_INLINE wake_reason suspend(agent& self, const wait_options& options, Entries& entries) noexcept {
  return suspend(slow_way{}, self, kind_of(options), options, entries);
}
/// As `suspend`, for a fiber that may resume on another worker and has one waker, which learns of the wait by a single
/// step of `publish`. Returns the worker that resumes it.
PIRN_ALWAYS_INLINE worker* suspend_until_claimed(worker* here, agent& self, const wait_options& options,
                                                 std::uint64_t& epoch, post_switch_action& publish) noexcept {
  no_entry nothing;
  static_cast<void>(begin_wait<false>(self, wait_kind::single_waker, epoch, nothing));  // no stop refuses this wait
  return switch_out(here, options, &publish);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
