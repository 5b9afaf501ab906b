// Keeps a worker without work spinning or parked. docs/scheduler.md explains it.
#include <algorithm>

#include "fiber/runtime_state.hpp"
#include "stack/pool_cooling.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

constexpr int relaxes_per_round = platform::exploring ? 1 : 32;
// How often a worker that spins asks its engine for events.
constexpr platform::duration spin_poll_interval = std::chrono::microseconds(10);
// If this time passes between two readings of the clock, the kernel may have run another thread there.
constexpr platform::duration suspicious_gap = std::chrono::microseconds(40);
// How often a worker with ready fibers asks its engine for events: not before the first time, and not before it has
// made as many switches as the last poll had events, but at the latest after the second time.
constexpr platform::duration min_poll_interval = std::chrono::microseconds(50);
constexpr platform::duration max_poll_interval = std::chrono::microseconds(250);

}  // namespace

std::uint64_t parker::switches() const noexcept { return w_.counters.switches.load(platform::memory_order_relaxed); }

void parker::poll(platform::time_point deadline) noexcept {
  events_ = w_.io->poll(deadline);
  switches_before_poll_ = switches();
}

void parker::poll_beside_fibers(platform::time_point now) noexcept {
  const platform::duration passed = now - last_poll_;
  const bool is_early =
      passed < max_poll_interval && !w_.io->has_submissions() && switches() - switches_before_poll_ < events_;
  if (passed >= min_poll_interval && !is_early) {
    poll(now);
    last_poll_ = now;
  }
}

platform::time_point parker::look_for_preemption(platform::time_point before) noexcept {
  const platform::time_point now = platform::now();
  if (now - before >= suspicious_gap) {
    const long known = times_preempted_;
    times_preempted_ = platform::times_preempted();
    if (times_preempted_ != known) {
      spinner_.record_preemption(before, now);
    }
  }
  return now;
}

bool parker::spin(platform::time_point now, const platform::atomic<std::uint32_t>* word,
                  std::uint32_t before) noexcept {
  if (!spinner_.wait(now)) {
    return false;
  }
  if (next_yield_ == platform::time_point{}) {
    next_yield_ = now + spin_poll_interval;
  }
  const bool may_steal = w_.owner.workers.size() > 1 && w_.idle->work_expected();
  // The kernel works on requests while this worker waits.
  const platform::time_point next_poll =
      w_.io->has_submissions()
          ? now
          : std::min({next_yield_, w_.timers.next(), w_.trimmer.next(), pool_cooling::next(w_.owner.pool)});
  while (now < next_poll) {
    for (int i = 0; i < relaxes_per_round; ++i) {
      if (!w_.incoming.empty()) {
        spinner_.hit();
        return true;
      }
      platform::relax();
    }
    if (may_steal && w_.owner.has_stealable()) {
      spinner_.hit();
      return true;
    }
    if (word != nullptr && word->load(platform::memory_order_acquire) != before) {
      spinner_.hit();
      return true;
    }
    now = look_for_preemption(now);
    if (!spinner_.wait(now)) {
      return false;
    }
  }
  // Yields to a thread that waits for this very CPU, maybe the awaited one.
  platform::yield_thread();
  now = look_for_preemption(now);
  next_yield_ = now + spin_poll_interval;
  if (may_steal && w_.owner.has_stealable()) {
    // The workers that search, of which there are enough, have not taken it: they may have no CPU.
    w_.stealing_.search_beside_others();
  }
  // The engine may report that the runtime ends, or anything else: the caller checks everything again.
  poll(now);
  last_poll_ = now;
  return true;
}

void parker::park() noexcept {
  w_.give_fork_stacks_back();
  w_.stacks.shrink();
  stealer& stealing = w_.stealing_;
  stealing.begin_parking();
  bool found = false;
  bool is_sentinel = false;
  if (w_.idle->work_expected()) {
    platform::heavy_fence();  // pairs with the light fence behind what is queued
    found = stealing.sees_work();
    is_sentinel = !platform::exploring && stealing.sees_traffic() && !found && w_.idle->try_become_sentinel();
  }
  if (!found && w_.incoming.set_parked_mark()) {
    w_.count(w_.counters.parks);
    w_.counters.ready.store(0, platform::memory_order_relaxed);
    const platform::time_point began = platform::now();
    const platform::time_point sentinel_wakeup = is_sentinel ? began + stealing.sentinel_pause() : platform::never;
    const platform::time_point next_step = std::min(w_.trimmer.next(), pool_cooling::next(w_.owner.pool));
    poll(std::min({w_.timers.next(), next_step, w_.probe.report_idle(w_), sentinel_wakeup}));
    last_poll_ = platform::now();
    if (!w_.incoming.empty()) {
      spinner_.record_sleep(began, w_.last_remote_push.load(platform::memory_order_relaxed), last_poll_);
    }
    w_.probe.withdraw_report();
    // A thread that pushes work from now on need not notify: this worker looks before it sleeps again.
    w_.incoming.clear_parked_mark();
    if (w_.owner.slices) {
      w_.owner.slices->worker_awakes();
    }
  }
  stealing.end_parking(found, is_sentinel);
  if (found) {
    platform::yield_thread();  // to a thief or an owner that was preempted inside of the queue
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
