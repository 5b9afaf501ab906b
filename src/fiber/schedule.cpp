// The wake, for every kind of agent.
#include "pirn/fiber/detail/schedule.hpp"

#include "fiber/runtime_state.hpp"
#include "fiber/thread_agent.hpp"
#include "pirn/fiber/detail/coroutine_runner.hpp"
#include "pirn/fiber/detail/worker_stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

/// Pushes a fiber or a chain of tasks, which is ready, to the inbox of a worker other than the caller's, if that is
/// one.
template <class Entry>
void push_from_elsewhere(const worker* here, worker& home, Entry* ready) noexcept {
  if (here != nullptr && &here->owner == &home.owner) {
    home.push_remote(ready);
  } else {
    check_not_forked(home.owner);
    home.inject(ready);
  }
}

void make_fiber_ready(fiber_control& f, placement where) noexcept {
  worker* const home = f.home();
  worker* const here = current_worker();
  if (f.traced()) {
    trace_woken(&f);
  }
  if (f.stealable()) {
    if (here == home || (here != nullptr && here->adopt_remote(&f))) {
      where == placement::back ? here->push_stealable(&f) : here->push_lifo_slot(&f);
    } else {
      check_not_forked(home->owner);
      home->inject_stealable(&f);
    }
  } else if (here != home) {
    push_from_elsewhere<run_node>(here, *home, &f);
  } else if (f.has_high_priority()) {
    home->queue.push_high(&f);
  } else {
    home->queue.push(&f, where);
  }
}

/// As `make_ready`, for an agent that is not a pinned fiber of the caller's worker. Runs on the worker's stack for
/// bounded fibers.
PIRN_NEVER_BOUNDED void make_ready_slow(agent& who, placement where) noexcept {
  switch (who.kind()) {
    case agent_kind::thread:
      static_cast<thread_agent&>(who).wake();
      break;
    case agent_kind::coroutine: {
      auto& chain = static_cast<coroutine_agent&>(who);
      chain.home().coroutines->schedule(chain);
      break;
    }
    default:
      make_fiber_ready(static_cast<fiber_control&>(who), where);
  }
}

}  // namespace

void coroutine_runner::schedule(coroutine_agent& who) noexcept {
  if (const worker* const here = current_worker(); here != &home_) {
    push_from_elsewhere<ready_chain>(here, home_, &who);
  } else {
    push(who);
  }
}

void make_ready(agent& who, placement where) noexcept {
  worker* const here = current_worker();
  if (fiber_control* const f = pinned_fiber(&who, here)) [[likely]] {
    here->queue.push(f, where);
    return;
  }
  if (here != nullptr && here->bounded != worker::bounded_fiber::none) {
    on_worker_stack(here, [&who, where]() noexcept { make_ready_slow(who, where); });
    return;
  }
  make_ready_slow(who, where);
}

void make_ready_and_yield(agent& who) noexcept {
  worker* const here = current_worker();
  auto* const f = who.kind() == agent_kind::fiber ? static_cast<fiber_control*>(&who) : nullptr;
  // Read before, since the agent may be gone afterwards.
  const bool over = here != nullptr && f != nullptr && f->home() == here && here->queue.may_switch_over();
  if (over && f->stealable() && !f->traced()) {
    here->queue.push_woken(f);  // not where a thief finds it, since it runs next
  } else {
    make_ready(who, placement::front);
  }
  if (over) {
    this_fiber::yield();  // to the fiber woken last
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
