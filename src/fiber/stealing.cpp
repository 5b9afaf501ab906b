// Moves fibers between workers: queues them for any worker, and searches for those of others. docs/scheduler.md
// explains it.
#include <algorithm>

#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

// How long a worker looks for work of others before it sleeps: a few microseconds, about the cost of sleep and wake-up.
constexpr int search_rounds = platform::exploring ? 1 : 16;
constexpr int relaxes_per_round = platform::exploring ? 1 : 32;
// The number of these rounds in which it only watches, before it steals from a queue.
constexpr int rounds_before_steal = platform::exploring ? 0 : 12;
// About one in this number of a busy worker's turns is for a stealable fiber.
constexpr unsigned stealable_interval = 64;

}  // namespace

void worker::push_stealable(fiber_control* f) noexcept {
  idle->expect_work();
  stealable.push(f);
  recruit_searcher();
}

void worker::push_lifo_slot(fiber_control* f) noexcept {
  if (owner.workers.size() == 1) {
    queue.push_woken(f);
    return;
  }
  idle->expect_work();
  stealable.push_lifo_slot(f);
  if (queue.has_ready()) {
    limit_budget(stealable_interval);
  }
  platform::light_fence();  // pairs with the heavy fence at the end of a search: one side sees what the other has done
  if (!idle->has_sentinel()) {
    recruit_searcher();
  }
}

bool worker::adopt_remote(fiber_control* f) noexcept {
  worker* const home = f->home();
  return &home->owner == &owner && stealable.adopt_from(home->stealable, [=, this]() noexcept { f->move_to(this); });
}

bool worker::begin_next(fiber_control* f) noexcept {
  const auto waits_here = [=, this]() noexcept { return f->home() == this && f->stealable() && !f->migratable(); };
  if (!waits_here() || !stealable.take_out(f, waits_here)) {
    return false;
  }
  f->pin_unless_migratable();
  queue.push_woken(f);
  return true;
}

run_node* worker::stealable_or_scheduler() noexcept {
  run_node* const node = stealing_.next(stealable);
  if (node == nullptr) {
    return queue.scheduler();
  }
  queue.become(node);
  return node;
}

void worker::recruit_searcher() noexcept {
  if (idle->recruit_searcher()) {
    count(counters.wakes);
  }
}

void worker::inject_stealable(fiber_control* f) noexcept {
  const std::shared_ptr<idle_workers> kept = idle;
  kept->expect_work();
  stealable.push_from_outside(f);
  static_cast<void>(kept->recruit_searcher());
}

void worker::take_one_stealable() noexcept {
  if (owner.options.calling_thread && owner.caller_is_idle.load(platform::memory_order_relaxed)) {
    stealing_.steal_from_idle_caller();
  }
  if (run_node* const node = stealing_.next(stealable)) {
    queue.push_back(node);
  }
}

void worker::limit_budget_for_stealable() noexcept {
  // No earlier for fibers of the list if another worker has time for them.
  if (stealable.lifo_version() != 0 || (!stealable.empty() && !idle->any())) {
    limit_budget(stealable_interval);
  }
}

void worker::publish_local_work() noexcept {
  owner.caller_is_idle.store(true, platform::memory_order_relaxed);
  if (owner.workers.size() > 1 && idle->work_expected()) {
    queue.remove_if([](const run_node* node) noexcept { return static_cast<const fiber_control*>(node)->stealable(); },
                    [this](run_node* node) noexcept { stealable.push(node); });
    if (!stealable.empty()) {
      recruit_searcher();
    }
  }
  stealing_.stop_searching();
}

run_node* stealer::next(stealable_queue& own) noexcept {
  run_node* node = nullptr;
  if (lifo_slot_turns_.allows() || own.empty()) {
    node = own.pop_lifo_slot();
    lifo_slot_turns_.count();
  }
  if (node == nullptr) {
    node = own.take();
    lifo_slot_turns_.restart();
  }
  if (node != nullptr) {
    static_cast<fiber_control*>(node)->pin_unless_migratable();
  }
  return node;
}

bool stealer::begin_steal() noexcept {
  searching_ = false;
  return w_.idle->end_search();
}

void stealer::steal_failed() noexcept { search(); }

void stealer::end_steal(bool last) noexcept {
  if (last && (w_.owner.has_stealable() || (!w_.idle->has_sentinel() && w_.owner.has_filled_lifo_slot()))) {
    w_.recruit_searcher();
  }
}

void stealer::steal_from_idle_caller() noexcept {
  worker& caller = *w_.owner.workers.front();
  const bool list = caller.stealable.worth_a_look();
  if (const std::uint32_t version = list ? 0 : caller.stealable.lifo_version(); list || version != 0) {
    search_beside_others();
    static_cast<void>(steal_from(caller, version));
  }
}

void stealer::stop_searching() noexcept {
  if (searching_ && begin_steal()) {
    platform::heavy_fence();  // pairs with the light fence behind what is queued
    end_steal(true);
  }
}

bool stealer::steal_from(worker& victim, std::uint32_t version) noexcept {
  const bool last = begin_steal();
  run_node* node = version != 0 ? victim.stealable.steal_lifo_slot(&w_, version) : victim.stealable.steal(&w_);
  if (node == nullptr) {
    steal_failed();
    return false;
  }
  if (version != 0) {
    sentinel_pause_ = first_sentinel_pause;
  }
  w_.count(w_.counters.steal_operations);
  for (bool first = true; node != nullptr; first = false) {
    auto* const f = static_cast<fiber_control*>(node);
    node = node->next;
    w_.count(w_.counters.stolen);
    if (first) {
      f->pin_unless_migratable();
      w_.queue.push_back(f);
    } else {
      w_.stealable.push(f);
    }
  }
  end_steal(last);
  return true;
}

bool stealer::waits_long_at(const worker& victim) const noexcept {
  return victim.stealable.worth_a_look() &&
         victim.stealable.taken() - seen_[victim.index].taken <= victim.stealable.size();
}

bool stealer::find_work(platform::random& random) noexcept {
  const std::size_t all = w_.owner.workers.size();
  if (all == 1 || !w_.idle->work_expected()) {
    return false;
  }
  if (!searching_) {
    searching_ = w_.idle->try_search();
    if (!searching_) {
      return false;
    }
  }
  for (std::size_t i = 0; i < all; ++i) {
    const stealable_queue& queue_there = w_.owner.workers[i]->stealable;
    seen_[i].lifo_version = queue_there.lifo_version();
    seen_[i].taken = queue_there.taken();
  }
  for (int round = 0; round < search_rounds; ++round) {
    const std::size_t start = random.next() % all;
    for (std::size_t i = 0; i < all; ++i) {
      worker& victim = *w_.owner.workers[(start + i) % all];
      if (&victim != &w_ && ((victim.forks.open.worth_a_look() && w_.steal_continuation(victim)) ||
                             (round >= rounds_before_steal && waits_long_at(victim) && steal_from(victim)))) {
        return true;
      }
    }
    if (!w_.incoming.empty()) {
      return true;
    }
    if (!w_.stealable.empty()) {
      // Yields to a thief that was preempted inside of the queue: until it leaves, no fiber can be taken.
      platform::yield_thread();
      return true;
    }
    for (int i = 0; i < relaxes_per_round; ++i) {
      platform::relax();
    }
  }
  for (std::size_t i = 0; i < all; ++i) {
    worker& other = *w_.owner.workers[i];
    if (const std::uint32_t version = seen_[i].lifo_version;
        version != 0 && &other != &w_ && other.stealable.lifo_version() == version && steal_from(other, version)) {
      return true;
    }
  }
  return false;
}

bool stealer::sees_work() const noexcept {
  return std::any_of(w_.owner.workers.begin(), w_.owner.workers.end(), [this](const auto& each) {
    const stealable_queue& there = each->stealable;
    return each->forks.open.worth_a_look() ||
           (each.get() == &w_     ? !there.empty()
            : platform::exploring ? there.worth_a_look() || there.lifo_version() != 0  // without a sentinel
                                  : waits_long_at(*each));
  });
}

bool stealer::sees_traffic() noexcept {
  bool some = false;
  for (const auto& each : w_.owner.workers) {
    const stealable_queue& there = each->stealable;
    const std::uint32_t moves = there.lifo_pushes() + there.taken();
    const bool moved = std::exchange(seen_[each->index].moves, moves) != moves;
    some |= each.get() != &w_ && (moved || !there.empty() || there.lifo_version() != 0);
  }
  return some;
}

void stealer::begin_parking() noexcept { w_.idle->transition_to_parked(w_.index, std::exchange(searching_, false)); }

void stealer::end_parking(bool found, bool was_sentinel) noexcept {
  searching_ = w_.idle->transition_from_parked(w_.index);
  if (was_sentinel) {
    w_.idle->resign_as_sentinel();
    sentinel_pause_ = std::min(2 * sentinel_pause_, max_sentinel_pause);
  }
  if (found || was_sentinel) {
    search_beside_others();  // so that another worker looks if this one gets other work
  }
}

void stealer::search_beside_others() noexcept {
  if (!searching_) {
    search();
  }
}

void stealer::search() noexcept {
  w_.idle->search();
  searching_ = true;
}

bool runtime_state::has_stealable() const noexcept {
  for (const auto& each : workers) {
    if (each->stealable.worth_a_look() || each->forks.open.worth_a_look()) {
      return true;
    }
  }
  return false;
}

bool runtime_state::has_filled_lifo_slot() const noexcept {
  return std::any_of(workers.begin(), workers.end(),
                     [](const auto& each) { return each->stealable.lifo_version() != 0; });
}

namespace {

struct push_stealable_action : post_switch_action {
  worker* here;
  fiber_control* who;
};

}  // namespace

void yield_stealable(worker* w) noexcept {
  fiber_control* const self = running_fiber(w);
  push_stealable_action publish{{[](post_switch_action* c) noexcept {
                                  auto* const request = static_cast<push_stealable_action*>(c);
                                  request->here->push_stealable(request->who);  // may resume it elsewhere at once
                                }},
                                w,
                                self};
  run_node* const next = w->queue.leave_to_scheduler();
  if (w->suspend_slow_mask->any()) {
    switch_slow(w, self, next, &publish, nullptr);
  } else {
    switch_nodes(w, self, next, &publish);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
