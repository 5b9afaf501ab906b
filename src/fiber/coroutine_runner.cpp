// Resumes the coroutines of tasks on a worker, in fibers that the runner adds as needed.
#include "pirn/fiber/detail/coroutine_runner.hpp"

#include <cstdlib>
#include <utility>

#include "fiber/runtime_state.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/context_value.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {
inherited_context& inherited_context_of_runner() noexcept {
  return inherited_context_of(*running_fiber(current_worker()));
}
}  // namespace

void coroutine_agent::enter() noexcept {
  const inherited_context* const here = inherited_context_here();
  innermost_ = here != nullptr ? here->innermost : nullptr;
  if (values_ != nullptr || (here != nullptr && here->values != nullptr)) {
    std::swap(inherited_context_of_runner().values, values_);
  }
}

void coroutine_agent::leave_slow() noexcept {
  const inherited_context* const here = inherited_context_here();
  if ((here != nullptr ? here->innermost : nullptr) != innermost_) {
    fail_contract(
        "a task suspends with a scope open, which belongs to the fiber that runs the task, but the task may continue "
        "in "
        "another fiber: close the scope before co_await, or wait in it by calls that suspend the fiber");
  }
  if (values_ != nullptr || (here != nullptr && here->values != nullptr)) {
    std::swap(inherited_context_of_runner().values, values_);
  }
}

void coroutine_agent::inherit_values() noexcept {
  if (const inherited_context* const here = inherited_context_here(); here != nullptr && here->values != nullptr) {
    here->values->references.fetch_add(1, platform::memory_order_relaxed);
    values_ = here->values;
  }
}

void coroutine_agent::release_values() noexcept { release(values_); }

coroutine_runner& coroutine_runner::of(worker& home) {
  if (home.coroutines == nullptr) {
    home.coroutines = std::make_unique<coroutine_runner>(home);
  }
  coroutine_runner& runner = *home.coroutines;
  if (runner.fibers_ == 0 && !runner.add_fiber()) {
    throw_no_fiber(make_error_code(stack_error::out_of_memory));
  }
  return runner;
}

bool coroutine_runner::add_fiber() noexcept {
  ++fibers_;
  try {
    if (auto made = try_spawn([this] { resume_all(); }, {.name = "coroutines"})) {
      made->detach();
      return true;
    }
  } catch (const std::exception&) {  // no memory: tried again at the next tick
  }
  --fibers_;
  return false;
}

void coroutine_runner::wake_idle() noexcept {
  if (waiter* const chosen = idle_.claim_first(); chosen != nullptr) {
    detail::schedule(*chosen->wake.agent(), placement::front);
  }
}

bool coroutine_runner::refill_budget() noexcept {
  if (home_.queue.has_ready() || home_.budget.left() == 0) {
    return false;
  }
  static_cast<void>(home_.consume_budget());
  grant_budget();
  return true;
}

std::coroutine_handle<> coroutine_runner::yield_slow(coroutine_agent& from) noexcept {
  const unsigned passed = from.passed;
  from.leave();
  push(from);
  return next(passed);
}

void coroutine_runner::begin(coroutine_agent& chain, std::coroutine_handle<> from) noexcept {
  switching_ = nullptr;
  resume(chain, from);
}

void coroutine_runner::resume(coroutine_agent& chain, std::coroutine_handle<> from) noexcept {
  chain.passed = 0;
  chain.enter();
  from.resume();  // now the chain may be gone
  while (left_over_) {
    std::exchange(left_over_, nullptr).resume();
  }
}

bool coroutine_runner::all_held_up(bool or_ready) const noexcept {
  unsigned held_up = 0;
  for (const active_resume* each = active_; each != nullptr; each = each->next) {
    held_up += each->fiber->waiting() || (or_ready && each->in_chain) ? 1 : 0;
  }
  return held_up == fibers_;
}

void coroutine_runner::poll() noexcept {
  if (ready_.first != nullptr) {
    // A call that gives way again and again, as one that polls, may wait for one of the chains that it holds up.
    const bool none_resumed = std::exchange(resumed_at_last_poll_, resumed()) == resumed();
    const bool stuck = idle_.empty() && all_held_up(none_resumed);
    if (stuck) {
      static_cast<void>(add_fiber());
    }
  } else if (home_.owner.stopping.load(platform::memory_order_acquire)) {
    // A fiber that finds nothing ends; a task that begins later gets a new fiber.
    wait_list::schedule_all(idle_.claim_all());
  }
}

void coroutine_runner::resume_all() noexcept {
  fiber_control& self = *running_fiber(&home_);
  self.set_runs_tasks();
  const inherited_context& inherited = inherited_context_of(self);
  active_resume me{&self, active_};
  active_ = &me;
  for (;;) {
    coroutine_agent* const next = ready_.first;
    if (next == nullptr) {
      const bool enough = !idle_.empty() || home_.owner.stopping.load(platform::memory_order_acquire);
      if (enough) {
        break;
      }
      ++idle_fibers_;
      only_home_.lock();
      static_cast<void>(idle_.wait(only_home_, {.stoppable = false, .what = "coroutines to resume"}));
      --idle_fibers_;
      continue;
    }
    if (budget_ == 0) {
      grant_budget();
      this_fiber::yield();
      continue;
    }
    --budget_;
    ready_.drop_first();
    switching_ = &self;
    inherited_ = &inherited;
    me.in_chain = true;
    resume(*next, next->continuation);
    me.in_chain = false;
  }
  if (switching_ == &self) {
    switching_ = nullptr;
  }
  active_resume** link = &active_;
  while (*link != &me) {
    link = &(*link)->next;
  }
  *link = me.next;
  --fibers_;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
