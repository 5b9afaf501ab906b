// The suspend of all agents but pinned and bounded fibers, and the deadlines of all waits.
#include "pirn/fiber/detail/suspend.hpp"

#include "fiber/runtime_state.hpp"
#include "fiber/thread_agent.hpp"
#include "pirn/fiber/detail/coroutine_runner.hpp"
#include "pirn/fiber/detail/worker_stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

/// Makes the deadline of the wait, if it has one, a timer. No other function does.
PIRN_ALWAYS_INLINE void make_deadline_timer(const wait_record& wait, timer& limit, timer_queue& timers) noexcept {
  timers.arm(limit, wait.options.deadline, wait.handle());
}

/// Lets a stop end the wait, and publishes it. The waiter is not running, even if a stopper has queued it: its worker
/// is here, and it cannot migrate. Afterwards it may be gone.
void open_and_publish(const wait_record& wait, post_switch_action& publish) noexcept {
  if (wait.options.stoppable && wait.self.open_to_stop(wait.epoch)) {
    schedule(wait.self, placement::front);
  }
  publish.run(&publish);
}

/// Runs in the context that follows a migratable fiber.
struct open_action : post_switch_action {
  const wait_record* wait;
  post_switch_action* publish;
  fiber_control* free_again;  ///< may migrate once the wait is published; null if it stays or never could
};

void run_open_action(post_switch_action* own) noexcept {
  const auto* const request = static_cast<open_action*>(own);
  fiber_control* const free_again = request->free_again;
  open_and_publish(*request->wait, *request->publish);
  if (free_again != nullptr) {
    free_again->enable_migration();
  }
}

/// Suspends a fiber that may resume on another worker, unless its deadline keeps it here.
PIRN_ALWAYS_INLINE void suspend_migratable(fiber_control& self, worker* home, const wait_record& wait,
                                           post_switch_action& publish) noexcept {
  const bool disabled = self.disable_migration();
  const bool timed = wait.options.deadline != platform::never;
  open_action open{{&run_open_action}, &wait, &publish, disabled && !timed ? &self : nullptr};
  post_switch_action* const after_switch = wait.options.stoppable || disabled ? &open : &publish;
  if (!timed) {
    switch_out(home, wait.options, after_switch);  // may resume on another worker, whose timers must not be touched
    return;
  }
  timer limit;
  make_deadline_timer(wait, limit, home->timers);
  switch_out(home, wait.options, after_switch);
  home->timers.cancel(limit);
  if (disabled) {
    self.enable_migration();
  }
}

PIRN_ALWAYS_INLINE void suspend_fiber(fiber_control& self, const wait_record& wait,
                                      post_switch_action& publish) noexcept {
  worker* const home = self.home();
  if (!self.is_pinned_to(home)) {
    suspend_migratable(self, home, wait, publish);
    return;
  }
  timer limit;
  make_deadline_timer(wait, limit, home->timers);
  pinned_way{home}.publish_and_switch(wait, direct_entry{does_nothing{}, [&publish] { publish.run(&publish); }});
  home->timers.cancel(limit);
}

void suspend_thread(thread_agent& self, const wait_record& wait, post_switch_action& publish) noexcept {
  self.begin_sleep(wait.options.deadline);
  open_and_publish(wait, publish);
  timer limit;
  timer_queue* const timers = self.timers();
  if (timers != nullptr) {
    make_deadline_timer(wait, limit, *timers);
  }
  self.end_sleep(wait);
  if (timers != nullptr) {
    timers->cancel(limit);
  }
}

}  // namespace

void suspend_slow(const wait_record& wait, post_switch_action& publish, timer* limit) noexcept {
  switch (wait.self.kind()) {
    [[likely]] case agent_kind::fiber:
    case agent_kind::child:
      suspend_fiber(static_cast<fiber_control&>(wait.self), wait, publish);
      break;
    case agent_kind::thread:
      suspend_thread(static_cast<thread_agent&>(wait.self), wait, publish);
      break;
    case agent_kind::coroutine:
      make_deadline_timer(wait, *limit, static_cast<coroutine_agent&>(wait.self).home().timers);
      open_and_publish(wait, publish);
  }
}

timer* arm_for_bounded(worker* w, fiber_control& self, std::uint64_t epoch, const wait_options& what) noexcept {
  timer* limit = nullptr;
  on_worker_stack(w, [&]() noexcept {
    limit = new timer;  // without memory for it bad_alloc ends the process
    make_deadline_timer({self, what, kind_of(what), epoch}, *limit, w->timers);
  });
  return limit;
}

void cancel_for_bounded(worker* w, timer* limit) noexcept {
  on_worker_stack(w, [&]() noexcept {
    w->timers.cancel(*limit);
    delete limit;
  });
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
