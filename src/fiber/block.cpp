// Suspending and waking, for fibers and for plain OS threads alike.
#include <memory>

#include "fiber/runtime_state.hpp"
#include "pirn/context/detail/of_fiber.hpp"
#include "pirn/fiber/detail/coroutine_runner.hpp"
#include "pirn/fiber/detail/worker_stack.hpp"
#include "pirn/fiber/scope.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

namespace {

/// A plain OS thread that waits. Never freed, since a late waker may still access it; reused by later threads.
struct thread_agent : agent {
  thread_agent() noexcept : agent(agent_kind::thread) {}
  platform::atomic<std::uint32_t> wakeups{0};
  bool counted = false;  ///< is among `waiting_threads`; set by the thread before it waits, then cleared by its waker
  inherited_context inherited;
  worker* hosted_worker = nullptr;  ///< the worker that runs on it while it waits
  thread_agent* next_free = nullptr;
};

platform::spinlock free_lock;
thread_agent* free_agents = nullptr;

/// Gives the agent back when its thread ends.
struct agent_of_thread {
  thread_agent* held = nullptr;
  agent_of_thread() = default;
  agent_of_thread(const agent_of_thread&) = delete;
  agent_of_thread& operator=(const agent_of_thread&) = delete;
  ~agent_of_thread() {
    if (held != nullptr) {
      const platform::quiet one_step;
      const platform::spin_guard guard(free_lock);
      held->next_free = free_agents;
      free_agents = held;
    }
  }
};

agent_of_thread& mine() noexcept { return platform::per_thread<agent_of_thread>::here(); }

thread_agent* take_agent() noexcept {
  const platform::quiet one_step;  // the result depends on what earlier threads have left
  {
    const platform::spin_guard guard(free_lock);
    if (thread_agent* const left = free_agents) {
      free_agents = left->next_free;
      return left;
    }
  }
  return new thread_agent;  // without memory for one word there is no way to wait; bad_alloc ends the process
}

thread_agent& agent_of_this_thread() noexcept {
  agent_of_thread& here = mine();
  if (here.held == nullptr) {
    here.held = take_agent();
    std::construct_at(&here.held->wakeups, 0U);  // a replay finds the value that the first run has found
  }
  return *here.held;
}

/// Returns this thread's agent, null if it has never waited.
const agent* agent_if_known() noexcept { return mine().held; }

wake_reason block_thread(thread_agent& self, std::uint64_t epoch, const wait_options& options,
                         post_switch_action& publish) noexcept {
  const std::uint32_t before = self.wakeups.load(platform::memory_order_relaxed);
  platform::time_point deadline = options.deadline;
  self.hosted_worker = caller_worker();
  if (self.hosted_worker == nullptr && deadline == platform::never) {
    self.counted = true;
    waiting_threads.add();
  }
  if (options.stoppable && self.open_to_stop(epoch)) {
    make_runnable(&self);
  }
  publish.run(&publish);
  if (self.hosted_worker != nullptr) {
    timer limit;
    self.hosted_worker->timers.arm(limit, options.deadline, waker(self, epoch));
    self.hosted_worker->run_on_caller(&self.wakeups, before);
    self.hosted_worker->timers.cancel(limit);
    return self.reason();
  }
  // A claim is not enough to continue: the claimer reads the waiter's node until it makes the waiter runnable.
  while (self.wakeups.load(platform::memory_order_acquire) == before) {
    if (!platform::futex_wait(self.wakeups, before, deadline)) {
      if (self.claim(epoch, wake_reason::timed_out)) {
        break;
      }
      deadline = platform::never;
    }
  }
  return self.reason();
}

/// Run by the context that follows a stoppable fiber: a stop may reach the fiber from now on.
struct stoppable_action : post_switch_action {
  fiber_control* who;
  std::uint64_t epoch;
  post_switch_action* publish;
  bool stoppable;
  bool migration_disabled_until_published;
};

void open_to_stop(post_switch_action* c) noexcept {
  auto* const request = static_cast<stoppable_action*>(c);
  if (request->stoppable && request->who->open_to_stop(request->epoch)) {
    make_runnable(request->who);
  }
  // The fiber is not running, even if a stopper has queued it: its worker is here, and it cannot migrate.
  fiber_control* const free_again = request->migration_disabled_until_published ? request->who : nullptr;
  request->publish->run(request->publish);
  if (free_again != nullptr) {
    free_again->enable_migration();
  }
}

}  // namespace

namespace {
/// Returns the running fiber; null on a plain thread and in a worker's scheduler.
fiber_control* fiber_here() noexcept {
  const worker* const w = current_worker();
  return w != nullptr && w->queue.running() != w->queue.scheduler() ? running_fiber(w) : nullptr;
}
}  // namespace

agent& current_agent() noexcept {
  if (worker* const w = current_worker()) {
    return *running_fiber(w);
  }
  return agent_of_this_thread();
}

inherited_context& inherited_context_of(agent& self) noexcept {
  if (self.kind() == agent_kind::thread) {
    return static_cast<thread_agent&>(self).inherited;
  }
  auto& f = static_cast<fiber_control&>(self);
  return f.is_child() ? static_cast<child_control&>(f).inherited : f.cold().inherited;
}

const inherited_context* inherited_context_here() noexcept {
  if (const worker* const w = current_worker()) {
    fiber_control& f = *running_fiber(w);
    return f.is_child() || f.has_cold_part() ? &inherited_context_of(f) : nullptr;
  }
  return mine().held != nullptr ? &mine().held->inherited : nullptr;
}

void** c_coroutine_of_fiber(bool to_write) noexcept {
  static void* none = nullptr;
  fiber_control* const f = fiber_here();
  if (f == nullptr) {
    return nullptr;
  }
  return to_write || f->has_cold_part() ? &f->cold().c_coroutine : &none;
}

void** usched_of_fiber(bool to_write) noexcept {
  static void* none[2] = {};
  fiber_control* const f = fiber_here();
  if (f == nullptr) {
    return nullptr;
  }
  return to_write || f->has_cold_part() ? f->cold().usched : none;
}

unwinds_under_way* unwinds_of_fiber(bool to_write) noexcept {
  static constinit unwinds_under_way none;
  fiber_control* const f = fiber_here();
  if (f == nullptr) {
    return nullptr;
  }
  return to_write || f->has_cold_part() ? &f->cold().unwinds : &none;
}

namespace {
void wake_thread(thread_agent& who) noexcept {
  worker* const hosted = who.hosted_worker;
  if (hosted == nullptr) {
    if (who.counted) {
      who.counted = false;
      waiting_threads.remove();
    }
    who.wakeups.fetch_add(1, platform::memory_order_release);
    platform::futex_wake(&who.wakeups, 1);
  } else if (hosted == current_worker()) {
    hosted->looked.thread_waits.store(false, platform::memory_order_relaxed);
    who.wakeups.fetch_add(1, platform::memory_order_release);
    hosted->request_tick();
  } else {
    // Once its word has changed, the thread may continue and end its runtime.
    const std::shared_ptr<engine> kept = hosted->io;
    hosted->looked.thread_waits.store(false, platform::memory_order_release);
    who.wakeups.fetch_add(1, platform::memory_order_release);
    kept->wake_worker();
  }
}

/// As `make_runnable`, for an agent that is not a pinned fiber of the caller's worker. Runs on the worker's stack for
/// bounded fibers.
PIRN_NEVER_BOUNDED void make_runnable_slow(agent* who, bool back) noexcept {
  if (who->kind() == agent_kind::thread) {
    wake_thread(static_cast<thread_agent&>(*who));
    return;
  }
  if (who->kind() == agent_kind::coroutine) {
    auto* const chain = static_cast<coroutine_agent*>(who);
    chain->home().coroutines->schedule(*chain);
    return;
  }
  auto* const f = static_cast<fiber_control*>(who);
  worker* const home = f->home();
  worker* const here = current_worker();
  if (f->traced()) {
    trace_woken(f);
  }
  if (f->stealable()) {
    if (here == home || (here != nullptr && here->adopt_remote(f))) {
      back ? here->push_stealable(f) : here->push_lifo_slot(f);
    } else {
      check_not_forked(home->owner);
      home->inject_stealable(f);
    }
  } else if (here == nullptr || &here->owner != &home->owner) {
    check_not_forked(home->owner);
    home->inject(f);
  } else if (here != home) {
    home->push_remote(f);
  } else if (f->has_high_priority()) {
    home->queue.push_high(f);
  } else {
    home->queue.push(f, back);
  }
}

}  // namespace

void make_runnable(agent* who, bool back) noexcept {
  worker* const here = current_worker();
  if (fiber_control* const f = pinned_fiber(who, here)) [[likely]] {
    here->queue.push(f, back);
    return;
  }
  if (here != nullptr && here->bounded == worker::bounded_fiber::runs) {
    on_worker_stack(here, [=]() noexcept { make_runnable_slow(who, back); });
    return;
  }
  make_runnable_slow(who, back);
}

void switch_over_to(agent* who) noexcept {
  worker* const here = current_worker();
  auto* const f = who->kind() == agent_kind::fiber ? static_cast<fiber_control*>(who) : nullptr;
  // Read before, since the agent may be gone afterwards.
  const bool over = here != nullptr && f != nullptr && f->home() == here;
  if (over && f->stealable() && !f->traced()) {
    here->queue.push_woken(f);  // not where a thief finds it, since it runs next
  } else {
    make_runnable(who);
  }
  if (over) {
    this_fiber::yield();  // to the fiber woken last
  }
}

wake_reason block(agent& self, std::uint64_t epoch, const wait_options& options, post_switch_action& publish) noexcept {
  if (self.kind() == agent_kind::thread) {
    return block_thread(static_cast<thread_agent&>(self), epoch, options, publish);
  }
  auto& f = static_cast<fiber_control&>(self);
  worker* const w = f.home();
  const bool timed = options.deadline != platform::never;
  timer limit;
  if (f.is_pinned_to(w)) {
    w->timers.arm(limit, options.deadline, waker(self, epoch));
    suspend_pinned(w, f, epoch, kind_of(options), options, [&publish] { publish.run(&publish); });
    w->timers.cancel(limit);
    return self.reason();
  }
  const bool migration_disabled = f.disable_migration();
  stoppable_action open{{&open_to_stop}, &f, epoch, &publish, options.stoppable, migration_disabled && !timed};
  post_switch_action* const after_switch = options.stoppable || migration_disabled ? &open : &publish;
  if (!timed) {
    suspend(w, options, after_switch);  // may resume on another worker, whose timers must not be touched
    return self.reason();
  }
  w->timers.arm(limit, options.deadline, waker(self, epoch));
  suspend(w, options, after_switch);
  w->timers.cancel(limit);
  if (migration_disabled) {
    f.enable_migration();
  }
  return self.reason();
}

}  // namespace detail

namespace this_fiber {

std::expected<void, wait_error> sleep_until(time_limit when) noexcept {
  detail::agent& self = detail::current_agent();
  std::uint64_t epoch = 0;
  if (!self.begin(detail::wait_kind::stoppable, epoch)) {
    return std::unexpected(detail::error_of(self.stop_reason()));
  }
  detail::post_switch_action nothing{[](detail::post_switch_action*) noexcept {}};
  const wake_reason why = detail::block(self, epoch, {.deadline = when, .what = "time to pass"}, nothing);
  return why == wake_reason::timed_out ? std::expected<void, wait_error>{} : std::unexpected(detail::error_of(why));
}

std::expected<void, wait_error> sleep_for(time_span how_long) noexcept { return sleep_until(how_long); }

namespace {

struct move_action : detail::post_switch_action {
  detail::worker* to;
  detail::fiber_control* who;
};

}  // namespace

std::expected<void, migrate_error> migrate_to(std::size_t worker) noexcept {
  detail::worker* const w = detail::current_worker();
  if (w == nullptr || !detail::running_fiber(w)->migratable()) {
    return std::unexpected(migrate_error::not_migratable);
  }
  const auto& all = w->owner.workers;
  if (worker >= all.size()) {
    return std::unexpected(migrate_error::no_such_worker);
  }
  if (worker == w->index) {
    return {};
  }
  detail::fiber_control* const self = detail::running_fiber(w);
  if (self->migration_disabled()) {
    return std::unexpected(migrate_error::has_deadline);
  }
  const wait_options nothing{.stoppable = false, .what = "another worker"};
  move_action leave{{[](detail::post_switch_action* c) noexcept {
                      const auto* const request = static_cast<move_action*>(c);
                      detail::worker* const to = request->to;
                      request->who->move_to(to);
                      to->push_remote(request->who);
                    }},
                    all[worker].get(),
                    self};
  detail::suspend(w, nothing, &leave);
  return {};
}

fiber_id get_id() noexcept {
  const std::uint64_t mine = number();
  return mine != 0 ? fiber_id(mine) : fiber_id::of_this_thread();
}

std::uint64_t number() noexcept {
  const detail::worker* const w = detail::current_worker();
  return w != nullptr ? detail::running_fiber(w)->number() : 0;
}

std::string_view name() noexcept {
  const detail::worker* const w = detail::current_worker();
  return w != nullptr ? detail::running_fiber(w)->name() : "";
}

std::expected<void, wait_error> check_stop() noexcept {
  const detail::worker* const w = detail::current_worker();
  const detail::agent* const self = w != nullptr ? detail::running_fiber(w) : detail::agent_if_known();
  if (self == nullptr) {
    return {};
  }
  return detail::unless_stopped(self->stop_reason(), deadline());
}

bool stop_requested() noexcept { return !check_stop(); }

}  // namespace this_fiber

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
