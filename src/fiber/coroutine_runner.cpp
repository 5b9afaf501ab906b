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
// After this number of coroutines, the other fibers of the worker have a turn.
constexpr unsigned coroutine_budget = 8;
}  // namespace

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

void coroutine_agent::leave() noexcept {
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
  runner.idle_.lock();
  const bool none = runner.fibers_ == 0;
  runner.idle_.unlock();
  if (none && !runner.add_fiber()) {
    throw_no_fiber(make_error_code(stack_error::out_of_memory));
  }
  return runner;
}

bool coroutine_runner::add_fiber() noexcept {
  idle_.lock();
  ++fibers_;
  idle_.unlock();
  try {
    if (auto made = try_spawn([this] { resume_all(); }, {.name = "coroutines"})) {
      made->detach();
      return true;
    }
  } catch (const std::exception&) {  // no memory: tried again at the next tick
  }
  idle_.lock();
  --fibers_;
  idle_.unlock();
  return false;
}

void coroutine_runner::schedule(coroutine_agent& who) noexcept {
  idle_.lock();
  who.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &who;
  last_ = &who;
  if (idle_.front() != nullptr) {
    idle_.notify_one_and_unlock();
  } else if (current_worker() == &home_ || home_.probe.coroutine_ready()) {
    idle_.unlock();
  } else {
    // Its fibers may be held up, and its worker asleep. Once the lock is free, its runtime may end.
    home_.probe.set_coroutine_ready();
    const std::shared_ptr<idle_workers> kept = home_.idle;
    const unsigned home = home_.index;
    idle_.unlock();
    kept->unpark(home);
  }
}

void coroutine_runner::resume(coroutine_agent& chain, std::coroutine_handle<> from) noexcept {
  chain.passed = 0;
  chain.enter();
  from.resume();  // now the chain may be gone
  while (left_over_) {
    std::exchange(left_over_, nullptr).resume();
  }
}

bool coroutine_runner::all_held_up() const noexcept {
  unsigned held_up = 0;
  for (const active_resume* each = active_; each != nullptr; each = each->next) {
    held_up += each->fiber->waiting() ? 1 : 0;
  }
  return held_up == fibers_;
}

void coroutine_runner::poll() noexcept {
  idle_.lock();
  home_.probe.coroutines_looked_at();
  if (first_ == nullptr) {
    if (home_.owner.stopping.load(platform::memory_order_acquire)) {
      idle_.notify_all_and_unlock();  // a fiber that finds nothing ends; a task that begins later gets a new fiber
    } else {
      idle_.unlock();
    }
    return;
  }
  const bool stuck = idle_.empty() && all_held_up();
  idle_.unlock();
  if (stuck) {
    static_cast<void>(add_fiber());
  }
}

void coroutine_runner::resume_all() noexcept {
  running_fiber(current_worker())->set_runs_tasks();
  active_resume me{running_fiber(current_worker()), nullptr};
  idle_.lock();
  for (unsigned turn = 1;; ++turn) {
    coroutine_agent* const next = first_;
    if (next == nullptr) {
      const bool enough = !idle_.empty() || home_.owner.stopping.load(platform::memory_order_acquire);
      if (enough) {
        break;
      }
      static_cast<void>(idle_.wait({.stoppable = false, .what = "coroutines to resume"}));
      idle_.lock();
      continue;
    }
    first_ = next->next_;
    if (first_ == nullptr) {
      last_ = nullptr;
    }
    me.next = active_;
    active_ = &me;
    idle_.unlock();
    resume(*next, next->continuation);
    if (turn % coroutine_budget == 0) {
      this_fiber::yield();
    }
    idle_.lock();
    active_resume** link = &active_;
    while (*link != &me) {
      link = &(*link)->next;
    }
    *link = me.next;
  }
  --fibers_;
  idle_.unlock();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
