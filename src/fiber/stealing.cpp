// Fibers that go from worker to worker, and workers that have nothing else to do. docs/scheduler.md explains it.
#include <algorithm>

#include "fiber/runtime_state.hpp"

namespace pirn::inline PIRN_ABI::detail {

namespace {

// How long a worker looks for work of others before it sleeps: a few microseconds, about what sleeping and waking cost.
constexpr int search_rounds = 16;
constexpr int relaxes_per_round = 32;
// A worker waits awake for twice as long as it takes to wake it, as far as it knows, but for that long at least.
constexpr platform::duration least_patience = std::chrono::microseconds(100);
// Meanwhile it asks its engine for events that often.
constexpr platform::duration spin_poll_interval = std::chrono::microseconds(10);
// If that long passes between two looks at the clock, somebody else wants the CPU.
constexpr platform::duration preempted = std::chrono::microseconds(40);
constexpr unsigned most_sleeps_between_spins = 255;
// Of the turns of a busy worker at least one in so many goes to a fiber that floats.
constexpr int turns_per_floating = 64;

}  // namespace

void worker::offer(fiber_control* f) noexcept {
  idle->expect_work();
  stealable.push(f);
  wake_another();
}

void worker::wake_another() noexcept {
  if (idle->wake_one()) {
    count(counters.wakes);
  }
}

bool worker::begin_theft() noexcept {
  searching_ = false;
  return idle->end_search();
}

void worker::theft_failed() noexcept {
  idle->search();
  searching_ = true;
}

void worker::theft_done(bool last) noexcept {
  if (last && owner.has_stealable()) {
    wake_another();
  }
}

void worker::offer_from_outside(fiber_control* f) noexcept {
  const std::shared_ptr<idle_workers> kept = idle;
  kept->expect_work();
  stealable.push_from_outside(f);
  static_cast<void>(kept->wake_one());
}

bool worker::take_floating() noexcept {
  run_node* const node = stealable.take();
  if (node == nullptr) {
    return false;
  }
  auto* const f = static_cast<fiber_control*>(node);
  f->begin_here();
  queue.push_back(f);
  return true;
}

void worker::take_share() noexcept {
  int share = queue.has_ready() ? 1 + switches_per_look_ / turns_per_floating : 1;
  while (share-- > 0 && take_floating()) {
  }
}

bool runtime_state::has_stealable() const noexcept {
  for (const auto& each : workers) {
    if (each->stealable.worth_a_look() || each->forks.open.worth_a_look()) {
      return true;
    }
  }
  return false;
}

void worker::stop_searching() noexcept {
  searching_ = false;
  if (idle->end_search()) {
    platform::heavy_fence();
    if (owner.has_stealable()) {
      wake_another();
    }
  }
}

bool worker::steal_from(worker& victim) noexcept {
  const bool last = begin_theft();
  run_node* node = victim.stealable.steal(this);
  if (node == nullptr) {
    theft_failed();
    return false;
  }
  count(counters.thefts);
  for (bool first = true; node != nullptr; first = false) {
    auto* const f = static_cast<fiber_control*>(node);
    node = node->next;
    count(counters.stolen);
    if (first) {
      f->begin_here();
      queue.push_back(f);
    } else {
      stealable.push(f);
    }
  }
  theft_done(last);
  return true;
}

bool worker::find_work() noexcept {
  const std::size_t all = owner.workers.size();
  if (all == 1 || !idle->work_expected()) {
    return false;
  }
  if (!searching_) {
    searching_ = idle->try_search();
    if (!searching_) {
      return false;
    }
  }
  for (int round = 0; round < search_rounds; ++round) {
    const std::size_t start = random_.next() % all;
    for (std::size_t i = 0; i < all; ++i) {
      worker& victim = *owner.workers[(start + i) % all];
      if (&victim != this && ((victim.forks.open.worth_a_look() && steal_continuation(victim)) ||
                              (victim.stealable.worth_a_look() && steal_from(victim)))) {
        return true;
      }
    }
    if (!incoming.empty() || !stealable.empty()) {
      return true;
    }
    for (int i = 0; i < relaxes_per_round; ++i) {
      platform::relax();
    }
  }
  return false;
}

bool worker::spin(platform::time_point now, const platform::atomic<std::uint32_t>* word,
                  std::uint32_t before) noexcept {
  if (!owner.may_spin) {
    return false;
  }
  if (!spinning()) {
    if (sleeps_to_spin_ != 0) {
      --sleeps_to_spin_;
      return false;
    }
    spin_until_ = now + patience();
  }
  const bool floating = owner.workers.size() > 1 && idle->work_expected();
  const platform::time_point limit = std::min({now + spin_poll_interval, timers.next(), trimmer.next()});
  while (now < limit) {
    for (int i = 0; i < relaxes_per_round; ++i) {
      if (!incoming.empty()) {
        sleeps_between_ = 0;
        return true;
      }
      platform::relax();
    }
    if (floating && owner.has_stealable()) {
      sleeps_between_ = 0;
      return true;
    }
    if (word != nullptr && word->load(platform::memory_order_acquire) != before) {
      return true;
    }
    const platform::time_point last = std::exchange(now, platform::now());
    if (now >= spin_until_ || now - last >= preempted) {
      spin_until_ = {};
      sleeps_between_ = std::min(2 * sleeps_between_ + 1, most_sleeps_between_spins);
      sleeps_to_spin_ = sleeps_between_;
      return false;
    }
  }
  // The engine may tell that the runtime ends, or anything else: the caller looks at everything again.
  io->poll(now);
  last_poll_ = now;
  return true;
}

platform::duration worker::patience() const noexcept {
  return std::min(std::max(2 * wake_takes_, least_patience), owner.options.idle_spin);
}

void worker::learn_from_sleep(platform::time_point began) noexcept {
  if (incoming.empty()) {
    return;
  }
  platform::time_point arrived = handed_over_at.load(platform::memory_order_relaxed);
  if (arrived < began) {  // from a plain thread, which leaves no trace here: some time before this
    arrived = last_poll_;
  } else {
    wake_takes_ += (last_poll_ - arrived - wake_takes_) / 4;
  }
  if (arrived - began < patience()) {
    sleeps_to_spin_ = sleeps_between_ = 0;
  }
}

void worker::park() noexcept {
  give_fork_stacks_back();
  idle->announce(index, searching_);
  searching_ = false;
  bool found = false;
  if (idle->work_expected()) {
    platform::heavy_fence();
    found = owner.has_stealable();
  }
  if (!found && incoming.park()) {
    count(counters.parks);
    counters.ready.store(0, platform::memory_order_relaxed);
    const platform::time_point began = platform::now();
    io->poll(std::min({timers.next(), trimmer.next(), vote_on_deadlock()}));
    last_poll_ = platform::now();
    learn_from_sleep(began);
    looked.vote.store(deadlock_look::ballot::absent, platform::memory_order_release);
    // Whoever hands something over now need not notify: this worker looks before it sleeps again.
    incoming.unpark();
  }
  searching_ = idle->retract(index);
  if (found) {
    if (!searching_) {
      idle->search();
      searching_ = true;
    }
    platform::yield_thread();  // to a thief or an owner that was preempted inside of the queue
  }
}

namespace {

struct offer_commit : commit {
  worker* here;
  fiber_control* who;
};

}  // namespace

void offer_running(worker* w) noexcept {
  fiber_control* const self = running_fiber(w);
  offer_commit publish{{[](commit* c) noexcept {
                         auto* const request = static_cast<offer_commit*>(c);
                         request->here->offer(request->who);  // which may resume it elsewhere at once
                       }},
                       w,
                       self};
  run_node* const next = w->queue.leave_to_scheduler();
  if (w->exceptions->any()) {
    switch_watched(w, self, next, &publish, nullptr);
  } else {
    switch_nodes(w, self, next, &publish);
  }
}

}  // namespace pirn::inline PIRN_ABI::detail
