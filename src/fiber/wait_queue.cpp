// Waits in a list of waiters with a lock, and wake-ups from it.
#include "pirn/fiber/expert/wait_queue.hpp"

#include "detail/exiting.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/detail/one_worker.hpp"
#include "pirn/fiber/expert/inline_wait.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

const char* to_string(wait_error error) noexcept {
  switch (error) {
    case wait_error::timed_out:
      return "the deadline has passed";
    case wait_error::stopped:
      return "the fiber was asked to stop";
    case wait_error::closed:
      return "it was closed";
    case wait_error::expired:
      return "the deadline of a scope has passed";
  }
  return "unknown wait error";
}

bool waker::wake(wake_reason reason, wake_policy policy) const noexcept {
  if (agent_ == nullptr || !claim(reason)) {
    return false;
  }
  schedule(policy);
  return true;
}

void waker::schedule(wake_policy policy) const noexcept { detail::schedule(*agent_, detail::placement_of(policy)); }

void detail::destroyed_with_waiters(const void* list, const waiter& first) noexcept {
  if (platform::exiting()) {
    return;
  }
  const char* what = "a synchronization object";
  const agent& who = *first.wake.agent();
  if (who.kind() == agent_kind::fiber) {
    const auto& f = static_cast<const fiber_control&>(who);
    if (f.home() == current_worker()) {  // so it does not run meanwhile
      what = f.waits->what;
    }
  }
  fail_contract(what, " was destroyed while it had waiters (its list of waiters is at ", list, ")");
}

void detail::one_worker::fail_misuse(const char* what) const noexcept {
  fail_contract(what, " (", static_cast<const void*>(this), ")");
}

void detail::one_worker::refuse_migratable() const noexcept {
  if (running_fiber(current_worker())->migratable()) {
    fail_misuse("a migratable fiber waits for an object of pirn::local");
  }
}

void detail::one_worker::claim_for_worker() const noexcept {
  const worker* const here = current_worker();
  if (here == nullptr) {
    fail_misuse("an object of pirn::local is used by a plain thread");
  }
  if (home_ != &nobody) {
    fail_misuse("an object of pirn::local is used on a worker other than its own");
  }
  home_ = here;
}

namespace {

template <class Lock>
PIRN_NEVER_BOUNDED wake_reason wait_generic(wait_list& list, Lock& lock, const wait_options& options, void* value,
                                            detail::placement where) noexcept {
  detail::waiter_place node;
  detail::list_entry<Lock> entry{list, lock, node, value, where};
  return detail::suspend(detail::current_agent(), options, entry);
}

template <class Lock>
PIRN_NOINLINE wake_reason wait_bounded(detail::worker* here, wait_list& list, Lock& lock, const wait_options& options,
                                       void* value, detail::placement where) noexcept {
  detail::waiter_place node;
  detail::list_entry<Lock> entry{list, lock, node, value, where};
  return detail::suspend(detail::bounded_way{here}, *detail::running_fiber(here), detail::kind_of(options), options,
                         entry);
}

/// The wait of a thread, of a fiber that is not pinned or has a deadline, or at the front of the list.
template <class Lock>
wake_reason wait_slow(detail::worker* here, wait_list& list, Lock& lock, const wait_options& options, void* value,
                      detail::placement where) noexcept {
  return here != nullptr && detail::running_fiber(here)->bounded()
             ? wait_bounded(here, list, lock, options, value, where)
             : wait_generic(list, lock, options, value, where);
}

template <class Lock>
PIRN_ALWAYS_INLINE wake_reason wait_in_front_of(wait_list& list, Lock& lock, const wait_options& options,
                                                void* value) noexcept {
  const detail::pinned_waiter who(options);
  if (who.self == nullptr) {
    return wait_slow(who.here, list, lock, options, value, detail::placement::front);
  }
  detail::waiter_place node;
  detail::list_entry<Lock> entry{list, lock, node, value, detail::placement::front};
  return detail::suspend(detail::pinned_way{who.here}, *who.self, detail::kind_without_deadline(options), options,
                         entry);
}

}  // namespace

wake_reason wait_list::wait(platform::spinlock& lock, const wait_options& options, void* value) noexcept {
  const detail::pinned_waiter who(options);
  return who.self != nullptr ? who.wait(*this, lock, detail::kind_without_deadline(options), options, value)
                             : wait_slow(who.here, *this, lock, options, value, detail::placement::back);
}

wake_reason wait_list::wait(const detail::one_worker& lock, const wait_options& options, void* value) noexcept {
  const detail::pinned_waiter who(options);
  if (who.self != nullptr) {
    return who.wait(*this, lock, detail::kind_without_deadline(options), options, value);
  }
  lock.refuse_migratable();
  return wait_slow(who.here, *this, lock, options, value, detail::placement::back);
}

wake_reason wait_list::wait_in_front(platform::spinlock& lock, const wait_options& options, void* value) noexcept {
  return wait_in_front_of(*this, lock, options, value);
}

wake_reason wait_list::wait_in_front(const detail::one_worker& lock, const wait_options& options,
                                     void* value) noexcept {
  return wait_in_front_of(*this, lock, options, value);
}

waiter* wait_list::claim_last() noexcept {
  while (last_ != nullptr) {
    waiter* const candidate = last_;
    remove(*candidate);
    if (candidate->wake.claim(wake_reason::notified)) [[likely]] {
      candidate->claimed = true;
      return candidate;
    }
  }
  return nullptr;
}

waiter* wait_list::claim_all() noexcept {
  // The claimed waiters are chained by their own nodes, which stay until each is made runnable.
  waiter* chain = nullptr;
  waiter** tail = &chain;
  while (waiter* const w = claim_first()) {
    *tail = w;
    tail = &w->next;
  }
  *tail = nullptr;
  return chain;
}

void wait_list::schedule_all(waiter* chain) noexcept {
  while (chain != nullptr) {
    waiter* const w = chain;
    chain = w->next;
    detail::schedule(*w->wake.agent(), detail::placement::back);
  }
}

void wait_list::schedule_all(waiter* chain, wake_policy policy) noexcept {
  if (chain == nullptr || policy == wake_policy::enqueue) {
    schedule_all(chain);
    return;
  }
  detail::agent& first = *chain->wake.agent();
  schedule_all(chain->next);  // before the caller suspends
  detail::schedule(first, detail::placement::direct);
}

bool wait_queue::notify_one_and_unlock(wake_policy policy) noexcept {
  waiter* const chosen = waiters_.claim_first();
  lock_.unlock();
  if (chosen == nullptr) {
    return false;
  }
  detail::schedule(*chosen->wake.agent(), detail::placement_of(policy));
  return true;
}

void wait_queue::notify_all() noexcept {
  lock_.lock();
  notify_all_and_unlock();
}

void wait_queue::notify_all_and_unlock() noexcept {
  detail::worker* const here = detail::current_worker();
  waiter* elsewhere = nullptr;
  waiter** tail = &elsewhere;
  while (waiter* const w = waiters_.claim_first()) {
    // A fiber of this worker does not run before the caller suspends, so it can be queued at once. Among a million it
    // would have left the cache by the end of a pass that only claims.
    if (detail::fiber_control* const f = detail::pinned_fiber(w->wake.agent(), here)) {
      here->queue.push_back(f);
    } else {
      *tail = w;
      tail = &w->next;
    }
  }
  *tail = nullptr;
  lock_.unlock();
  wait_list::schedule_all(elsewhere);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
