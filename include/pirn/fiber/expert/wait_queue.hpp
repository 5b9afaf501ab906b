// The only blocking primitive. Everything in sync, and io's readiness, is a thin layer on it.
#pragma once

#include <cstdint>
#include <expected>

#include "pirn/detail/time.hpp"
#include "pirn/fiber/detail/agent.hpp"
#include "pirn/fiber/wait_error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The possible wakers of a wait, besides a deadline and a stop, as far as known; for the search for deadlocks.
enum class awaited : std::uint8_t {
  anybody,   ///< any fiber or thread
  holder,    ///< the holder of `wait_options::object`, which is a `detail::owner_mark`
  fiber,     ///< the fiber whose control block is `object`, by its end
  task,      ///< the chain of tasks whose `detail::coroutine_agent` is `object`, by its end
  children,  ///< all children of the scope whose list of stops is `object`, by their ends
  external,  ///< not a fiber: the kernel, or a thread of the runtime that is no worker
};

/// How a wait may end and what a dump says about it.
struct wait_options {
  time_limit deadline = platform::never;  ///< when the wait ends with `wake_reason::timed_out`
  /// Whether a stop request ends the wait. False if the caller could not handle that (relocking after a wait).
  bool stoppable = true;
  awaited wakeable_by = awaited::anybody;  ///< the possible wakers, for the search for deadlocks
  const char* what = "something";          ///< static text: what the fiber waits for
  const void* object = nullptr;            ///< the address that the dump shows beside it
};

/// How a woken fiber is scheduled. After the wake policies of the SWAPSTACK paper (Dolan et al. 2013).
enum class wake_policy : std::uint8_t {
  enqueue,  ///< it is made ready; the caller continues
  /// If both are of one worker it runs at once, and the caller goes behind all ready fibers: a suspension point. Within
  /// `runtime_options::lifo_turns`, so that no fiber starves. Otherwise as `enqueue`.
  switch_over,
};

/// Ends one particular wait of one fiber or plain thread. After the wait has ended for another reason, a late wake-up
/// does nothing, because its epoch is an earlier one. Valid as long as the waiting fiber has not ended. Any thread or
/// fiber may call it. After the waker of Boost.Fiber.
class waker {
 public:
  waker() noexcept = default;
  waker(detail::agent& who, std::uint64_t epoch) noexcept : agent_(&who), epoch_(epoch) {}

  /// Makes the waiter ready, at the front of its worker's queue. True if this call ended the wait.
  bool wake(wake_reason reason = wake_reason::notified, wake_policy policy = wake_policy::enqueue) const noexcept;
  /// Ends the wait without making the waiter ready: if true, the caller must call `schedule`.
  PIRN_ALWAYS_INLINE bool claim(wake_reason reason) const noexcept { return agent_->claim(epoch_, reason); }
  /// Makes the waiter, whose wait the caller has claimed, ready. Called once; then the waiter may be gone.
  void schedule(wake_policy policy = wake_policy::enqueue) const noexcept;
  /// Returns the waiter, for `detail::schedule`.
  [[nodiscard]] detail::agent* agent() const noexcept { return agent_; }

 private:
  detail::agent* agent_ = nullptr;
  std::uint64_t epoch_ = 0;
};

struct waiter;

namespace detail {

/// Returns the error for a wait that was not notified.
constexpr wait_error error_of(wake_reason reason) noexcept {
  return reason == wake_reason::stopped   ? wait_error::stopped
         : reason == wake_reason::expired ? wait_error::expired
                                          : wait_error::timed_out;
}
/// Returns success, unless a stop was requested or the deadline has passed. The clock decides on the deadline, since no
/// timer fires while a fiber of its worker computes.
inline std::expected<void, wait_error> unless_stopped(wake_reason why, platform::time_point deadline) noexcept {
  if (why != wake_reason::notified) {
    return std::unexpected(error_of(why));
  }
  if (deadline != platform::never && deadline <= platform::now()) {
    return std::unexpected(wait_error::expired);
  }
  return {};
}

class one_worker;
class worker;
struct fiber_control;
template <class Lock, bool OnlyNotified>
struct list_entry;

/// An action that the next context runs on behalf of the one that was just switched out. Earlier, another worker could
/// resume that context while it still runs.
struct post_switch_action {
  void (*run)(post_switch_action*) noexcept;
};

/// Returns the kind of a wait with these options, which name no deadline.
inline wait_kind kind_without_deadline(const wait_options& options) noexcept {
  return options.stoppable ? wait_kind::stoppable : wait_kind::single_waker;
}
/// Returns the kind of a wait with these options.
inline wait_kind kind_of(const wait_options& options) noexcept {
  const wait_kind kind = kind_without_deadline(options);
  return kind == wait_kind::single_waker && options.deadline != platform::never ? wait_kind::timed : kind;
}
/// Returns the calling fiber, or the plain OS thread's own agent.
agent& current_agent() noexcept;
/// Returns the placement of a fiber that is woken by this policy.
constexpr placement placement_of(wake_policy policy) noexcept {
  return policy == wake_policy::enqueue ? placement::front : placement::direct;
}
/// Reports a list destroyed with waiters, and what the first one waits for if that is known; aborts. Not in `exit`.
PIRN_ENDS_PROCESS void destroyed_with_waiters(const void* list, const waiter& first) noexcept;

}  // namespace detail

/// The place of a fiber (or thread) in a wait_list; lies on the waiter's stack.
struct waiter {
  waiter* next = nullptr;      ///< the next younger waiter of the list, or of a chain
  waiter* previous = nullptr;  ///< the next older one
  waker wake;                  ///< wakes the waiter
  void* value = nullptr;       ///< handed to the waiter by the primitive, under the list's lock
  bool linked = false;         ///< under the list's lock
  bool claimed = false;        ///< written by `claim_first`, read once the waiter runs again
};

/// A first-in-first-out list of waiters without a lock, for primitives that keep several under one lock; the others use
/// `wait_queue`. That lock must be held in every call.
class wait_list {
 public:
  wait_list() noexcept = default;
  /// Aborts if there are waiters: nothing could wake them any more. Not in `exit`, where that does not matter.
  ~wait_list() {
    const wait_list* self = this;
#if !defined(__clang__)
    asm("" : "+r"(self));  // gcc 12 warns of an uninitialized member where a std::optional<latch> is reset
#endif
    if (self->first_ != nullptr) [[unlikely]] {
      detail::destroyed_with_waiters(this, *self->first_);
    }
  }
  wait_list(const wait_list&) = delete;
  wait_list& operator=(const wait_list&) = delete;

  /// Suspends the caller until it is notified, stopped or its deadline passes. `lock` is released once the caller is
  /// switched out, and is not held on return. A notifier finds `value` in the waiter.
  [[nodiscard]] wake_reason wait(platform::spinlock& lock, const wait_options& options, void* value = nullptr) noexcept;
  /// As the overload above, for a list of one worker. Aborts in a migratable fiber, which another worker might resume.
  [[nodiscard]] wake_reason wait(const detail::one_worker& lock, const wait_options& options,
                                 void* value = nullptr) noexcept;
  /// As `wait`, but ahead of all others: for a waiter that was notified and did not get what it has waited for.
  [[nodiscard]] wake_reason wait_in_front(platform::spinlock& lock, const wait_options& options, void* value) noexcept;
  [[nodiscard]] wake_reason wait_in_front(const detail::one_worker& lock, const wait_options& options,
                                          void* value) noexcept;
  /// As `wait`, but in a pinned fiber without a deadline the switch is inlined into the caller. See inline_wait.hpp.
  template <class Lock>
  [[nodiscard]] wake_reason wait_inline(Lock& lock, const wait_options& options, void* value) noexcept;
  /// As the overload above. Calls `accept_word()` if the waker may use `switch_to_with_value`; `word` is then the value
  /// that the waker passed.
  template <class Lock, class AcceptWord>
  [[nodiscard]] wake_reason wait_inline(Lock& lock, const wait_options& options, void* value, std::uintptr_t& word,
                                        const AcceptWord& accept_word) noexcept;

  /// Claims the first waiter whose wait has not ended otherwise and takes it off the list, or returns null. The caller
  /// may hand over a value, then must call `w->wake.schedule()`, best after unlocking; after that the waiter is gone.
  [[nodiscard]] PIRN_ALWAYS_INLINE waiter* claim_first() noexcept {
    while (first_ != nullptr) {
      waiter* const candidate = first_;
      first_ = candidate->next;
      if (first_ != nullptr) {
        first_->previous = nullptr;
      } else {
        last_ = nullptr;
      }
      candidate->linked = false;
      if (candidate->wake.claim(wake_reason::notified)) [[likely]] {
        candidate->claimed = true;
        return candidate;
      }
    }
    return nullptr;
  }
  /// As `claim_first`, from the other end.
  [[nodiscard]] waiter* claim_last() noexcept;
  /// Claims all waiters and takes them off the list, linked by `next` in order of age; for `schedule_all`. O(n).
  [[nodiscard]] waiter* claim_all() noexcept;
  /// Makes the waiters from `claim_all` ready, behind all ready fibers. Best after unlocking. O(n).
  static void schedule_all(waiter* chain) noexcept;
  /// As the overload above, but with `switch_over` the first one runs at once if it is of the caller's worker.
  static void schedule_all(waiter* chain, wake_policy policy) noexcept;
  /// Returns the first waiter, or null; its wait may have ended already.
  [[nodiscard]] waiter* front() const noexcept { return first_; }
  /// Whether there is no waiter.
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

 private:
  friend class wait_set;
  friend class wait_queue;
  template <class Lock, bool OnlyNotified>
  friend struct detail::list_entry;
  /// Removes a waiter whose wait has ended, and that no notifier has claimed.
  template <class Lock>
  PIRN_NOINLINE void remove_after_wait(Lock& lock, waiter& node) noexcept {
    // A notifier may be looking at the node right now, so even an unlinked one is left only under the lock.
    const platform::spin_guard guard(lock);
    if (node.linked) {
      remove(node);
    }
  }
  PIRN_ALWAYS_INLINE void append(waiter& w) noexcept {
    w.previous = last_;
    w.next = nullptr;
    w.linked = true;
    // No choice between two addresses: a compiler computes those before a loop and keeps them over each switch in it.
    if (last_ != nullptr) {
      last_->next = &w;
    } else {
      first_ = &w;
    }
    last_ = &w;
  }
  void prepend(waiter& w) noexcept {
    w.next = first_;
    w.previous = nullptr;
    w.linked = true;
    (first_ != nullptr ? first_->previous : last_) = &w;
    first_ = &w;
  }
  PIRN_ALWAYS_INLINE void remove(waiter& w) noexcept {
    (w.previous != nullptr ? w.previous->next : first_) = w.next;
    (w.next != nullptr ? w.next->previous : last_) = w.previous;
    w.linked = false;
  }

  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

/// A first-in-first-out queue of waiters with the lock that also guards the state of the primitive built on it.
/// Usable by fibers of any worker and by plain threads.
class wait_queue {
 public:
  /// Locks the queue. Spins: hold it for a few instructions, and do not suspend meanwhile.
  void lock() noexcept { lock_.lock(); }
  /// Unlocks the queue.
  void unlock() noexcept { lock_.unlock(); }

  /// As `wait_list::wait`; the lock must be held, and `wait` releases it.
  [[nodiscard]] wake_reason wait(const wait_options& options, void* value = nullptr) noexcept {
    return waiters_.wait(lock_, options, value);
  }
  /// Appends a waiter that is suspended by other means. It must be notified before it is destroyed.
  void append(waiter& w) noexcept { waiters_.append(w); }
  /// As `wait_list::claim_first`, with the lock held.
  [[nodiscard]] waiter* claim_first() noexcept { return waiters_.claim_first(); }
  /// As `wait_list::claim_all`, with the lock held.
  [[nodiscard]] waiter* claim_all() noexcept { return waiters_.claim_all(); }
  /// As `wait_list::front`, with the lock held.
  [[nodiscard]] waiter* front() const noexcept { return waiters_.front(); }
  /// Whether there is no waiter, with the lock held.
  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }

  /// For a wait in several queues at once (`wait_set`).
  [[nodiscard]] platform::spinlock& own_lock() noexcept { return lock_; }
  /// The waiters, for such a wait.
  [[nodiscard]] wait_list& list() noexcept { return waiters_; }

  /// Takes the lock and wakes the first waiter. True if there was one.
  PIRN_ALWAYS_INLINE bool notify_one(wake_policy policy = wake_policy::enqueue) noexcept {
    lock_.lock();
    if (waiters_.empty()) {
      lock_.unlock();
      return false;
    }
    return notify_one_and_unlock(policy);
  }
  /// As `notify_one`, with the lock held by the caller; releases it.
  bool notify_one_and_unlock(wake_policy policy = wake_policy::enqueue) noexcept;
  /// Takes the lock and wakes all present waiters. O(n).
  void notify_all() noexcept;
  /// As `notify_all`, with the lock held by the caller; releases it.
  void notify_all_and_unlock() noexcept;

 private:
  platform::spinlock lock_;
  wait_list waiters_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
