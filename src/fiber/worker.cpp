// The loop of a worker, and the slow paths of its switches.
#include "pirn/fiber/detail/worker.hpp"

#include <algorithm>
#include <utility>

#include "fiber/runtime_state.hpp"
#include "pirn/fiber/detail/coroutine_runner.hpp"
#include "stack/pool_cooling.hpp"

// Present in both C++ runtimes; only one declares it in <cxxabi.h>.
extern "C" void* cxa_get_globals() noexcept asm("__cxa_get_globals");

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {
// How long a worker may switch between fibers before it looks at inbox and timers, and may poll its engine. The number
// of switches adapts to that: fibers that only yield need few ticks, fibers that compute need one after nearly every
// switch.
constexpr auto tick_interval = std::chrono::microseconds(50);
// How often it counts the ready fibers: that takes less than 10 ns for each, so a thousandth of the time.
constexpr auto count_interval = std::chrono::milliseconds(10);
constexpr auto count_interval_for_each = std::chrono::microseconds(10);
constexpr std::uint64_t ids_at_a_time = 1024;
// The stacks of more ready fibers than that are not in the cache when their turns come. Then a worker fetches those of
// the next fibers all at once. A fiber that fetches its own waits for one line after the other, and for its page.
constexpr std::uint64_t ready_beyond_cache = 4096;
constexpr unsigned fetched_ahead = 64;
static_assert(fetched_ahead >= timer_queue::at_a_tick);  // otherwise timers would fire faster than their fibers run
platform::atomic<std::uint64_t> ids_reserved{0};

/// Returns how many idle stacks a worker keeps. Of a pool with a limit, all workers together keep at most half, since
/// an idle stack of one worker is out of reach for the others.
std::size_t stack_cache_capacity(const runtime_state& state) noexcept {
  if (state.options.trace) {
    return 0;  // then no spawn is a fast one
  }
  constexpr std::size_t max_stacks = 1024;
  const guarded_pool_options& pool_options = state.pool.options();
  const std::size_t limit =
      std::min(pool_options.max_stacks, pool_options.max_bytes / std::max<std::size_t>(state.options.stack_size, 1));
  return std::clamp<std::size_t>(limit / (2 * state.options.workers), 2, max_stacks);
}
}  // namespace

worker::worker(runtime_state& state, unsigned number)
    : queue(state.options.lifo_turns, state.options.high_priority_turns),
      stacks(state.pool, state.options.stack_size, stack_cache_capacity(state)),
      trimmer(state.options.trim_after),
      io(state.options.make_engine()),
      idle(state.idle),
      owner(state),
      index(number),
      traced(state.options.trace ? fiber_control::traced_bit : 0),
      stealing_(*this, state.options.workers),
      parking_(*this, state.options.idle_spin) {
  forks.wake = &idle->sleepers();
  idle->register_worker(index, io);
  pool_cooling::begin(owner.pool);
}

worker::~worker() {
  give_fork_stacks_back();
  pool_cooling::end(owner.pool);
  io->retire();
}

void worker::update_slow_masks() noexcept {
  const bool has_more = mutexes_held != 0 || outer_body != 0 || traced != 0 || forking();
  suspend_slow_mask = has_more || bounded != bounded_fiber::none ? &force_slow_path : thread_exceptions;
  yield_slow_mask = stacks.reserved() != 0 ? &force_slow_yield : suspend_slow_mask;
}

bool worker::get_ready_to_spawn() noexcept {
  if (stacks.reserve() != stack_error::none) {
    return false;
  }
  stacks.unreserve();
  if (next_id == last_id) {
    reserve_ids();
  }
  return blocks.get_one();
}

void worker::reserve_ids() noexcept {
  next_id = ids_reserved.fetch_add(ids_at_a_time, platform::memory_order_relaxed);
  last_id = next_id + ids_at_a_time;
}

std::uint64_t make_foreign_id() noexcept {
  // Plain threads take a whole block for one fiber: ids are plenty and this is not a fast path.
  return ids_reserved.fetch_add(ids_at_a_time, platform::memory_order_relaxed) + 1;
}

void worker::take_incoming() noexcept {
  if (incoming.empty()) {
    return;
  }
  incoming.take_each([this](run_node* node) noexcept { queue.push(static_cast<fiber_control*>(node)); },
                     [this](ready_chain* chain) noexcept { coroutines->push(static_cast<coroutine_agent&>(*chain)); });
}

void worker::adapt(platform::time_point now) noexcept {
  if (budget_exhausted()) {
    const auto spent = now - last_tick_;
    if (platform::exploring) {
      tick_budget_ = 16;  // there time stands still, as if the switches took none
    } else if (spent < tick_interval && tick_budget_ < max_switch_budget &&
               budget.of_tick() == static_cast<unsigned>(tick_budget_)) {
      tick_budget_ *= 2;
    } else if (spent > 2 * tick_interval && tick_budget_ > 1) {
      tick_budget_ /= 2;
    }
  }
}

void worker::resume_next() noexcept {
  run_node* const scheduler = queue.scheduler();
  run_node* const next = queue.leave();
  if (next != scheduler) {
    if (traced != 0) {
      trace_resumed(this, next);
    }
    switch_nodes(this, scheduler, next, nullptr);
  }
}

void worker::count_ready(platform::time_point now) noexcept {
  const std::size_t count = queue.count_ready() + stealable.size() + (stealable.lifo_version() != 0 ? 1 : 0);
  counters.ready.store(count, platform::memory_order_relaxed);
  next_count_ = now + count_interval + count * count_interval_for_each;
}

namespace {
/// The worker that runs on this thread while it waits.
struct caller_worker_here {
  worker* which = nullptr;
};
worker*& caller_worker_of_thread() noexcept { return platform::per_thread<caller_worker_here>::here().which; }
}  // namespace

worker* caller_worker() noexcept {
  worker* const here = caller_worker_of_thread();
  return here != nullptr && !is_forked(here->owner) ? here : nullptr;  // that of a parent never runs again
}

void worker::begin() noexcept {
  queue.scheduler()->sanitizer.adopt_thread();
  thread_exceptions = static_cast<exceptions_in_flight*>(cxa_get_globals());
  yield_slow_mask = suspend_slow_mask = traced != 0 ? &force_slow_path : thread_exceptions;
  enter_dumps(*this);
  last_tick_ = platform::now();
  parking_.begin(last_tick_);
}

void worker::end() noexcept {
  queue.scheduler()->sanitizer.destroy();
  leave_dumps(*this);
}

void worker::run() noexcept {
  platform::set_current_worker(this);
  std::optional<overflow_thread> overflow;
  try {
    if (!platform::exploring) {  // there the thread does not belong to the worker
      overflow.emplace();
    }
  } catch (const std::system_error& refused) {
    owner.start_error.store(refused.code().value(), platform::memory_order_release);
  } catch (const std::bad_alloc&) {  // for the text of that error
    owner.start_error.store(static_cast<int>(std::errc::not_enough_memory), platform::memory_order_release);
  }
  begin();
  owner.started.fetch_add(1, platform::memory_order_release);
  platform::futex_wake(&owner.started, 1);
  loop(nullptr, 0);
  owner.notify_all();
  end();
  platform::set_current_worker(nullptr);
}

void worker::adopt_thread() {
  overflow_of_caller_.emplace();
  caller_worker_of_thread() = this;
  begin();
}

void worker::release_thread() noexcept {
  end();
  caller_worker_of_thread() = nullptr;
  overflow_of_caller_.reset();
}

void worker::run_on_caller(const platform::atomic<std::uint32_t>* word, std::uint32_t before) noexcept {
  if (word == nullptr || word->load(platform::memory_order_acquire) == before) {
    probe.thread_waits();
  }
  owner.caller_is_idle.store(false, platform::memory_order_relaxed);
  if (owner.slices) {
    owner.slices->worker_awakes();
  }
  const exceptions_in_flight of_thread = std::exchange(*thread_exceptions, {});
  platform::set_current_worker(this);
  loop(word, before);
  io->end_receives();  // the thread may be away for long, and a close waits for their ends
  publish_local_work();
  platform::set_current_worker(nullptr);
  *thread_exceptions = of_thread;
}

namespace {
/// Called at the beginning of a tick: fetches the ends of the stacks of the next fibers in the ring, where each of them
/// continues, and lets the next tick come when these have had their turns.
void fetch_ahead(worker& w) noexcept {
  // Fibers that were just woken run before those of the ring, which then stay the same for long.
  if (w.counters.ready.load(platform::memory_order_relaxed) < ready_beyond_cache || w.queue.woken() != 0) [[likely]] {
    return;
  }
  const run_node* node = w.queue.scheduler()->next;
  for (unsigned i = 0; i != fetched_ahead; ++i, node = node->next) {
    if (node == w.queue.scheduler()) {
      return;
    }
    const bool has_begun = node->state.pc != nullptr;
    const char* const end = has_begun ? static_cast<const char*>(node->state.sp) : reinterpret_cast<const char*>(node);
    for (int at = -128; at <= 192; at += 64) {
      __builtin_prefetch(end + at, 1);
    }
  }
  w.limit_budget(fetched_ahead);
}
}  // namespace

void worker::run_tick(platform::time_point now) noexcept {
  if (probe.quiescent()) {
    probe.end_quiescence(owner.deadlocks, now);
  }
  stealing_.stop_searching();
  parking_.end_wait();
  parking_.poll_beside_fibers(now);
  trimmer.fibers_have_run(now);
  if (trimmer.due(now)) [[unlikely]] {
    trimmer.step(*this, now, true);
  }
  if (now >= pool_cooling::next(owner.pool)) [[unlikely]] {
    pool_cooling::step(owner.pool, now, true);
  }
  stacks.age();
  adapt(now);
  last_tick_ = now;
  if (now >= next_count_) {
    count_ready(now);
  }
  slice_over.store(false, platform::memory_order_relaxed);
  budget.refill(static_cast<unsigned>(tick_budget_));
  limit_budget_for_stealable();
  fetch_ahead(*this);
  resume_next();
  if constexpr (!platform::exploring) {  // there the explorer finds deadlocks
    probe.tick_ended(owner.deadlocks.round_after_tick());
  }
  counters.switches.store(counters.switches.load(platform::memory_order_relaxed) + budget.consumed(),
                          platform::memory_order_relaxed);
}

namespace {
/// Blocks for ever, since the process is about to end and objects that fibers use may be gone.
[[noreturn]] void stay_for_ever() noexcept {
  static constinit platform::signal_atomic<std::uint32_t> never{0};
  for (;;) {
    platform::futex_wait(never, 0);
  }
}
}  // namespace

void worker::loop(const platform::atomic<std::uint32_t>* word, std::uint32_t before) noexcept {
  scheduler_frame = __builtin_frame_address(0);
  bool had_turn = word == nullptr;
  for (;;) {
    check_not_forked(owner);
    if (owner.abandoned.load(platform::memory_order_relaxed)) [[unlikely]] {
      stay_for_ever();
    }
    const bool more_to_publish = completions_.publish();
    take_incoming();
    const platform::time_point now = platform::now();
    timers.fire(now, timer_queue::at_a_tick);
    const bool wait_is_over = word != nullptr && word->load(platform::memory_order_acquire) != before;
    if (wait_is_over && had_turn) {
      completions_.publish();  // the others too: its next tick may be far off
      return;
    }
    take_one_stealable();
    if (coroutines != nullptr) {
      coroutines->poll();
    }
    if (owner.deadlocks.calls(probe, now)) [[unlikely]] {
      probe.look(*this, now, last_tick_, random_);
    }
    if (queue.has_ready()) {
      run_tick(now);
      had_turn = true;
      continue;
    }
    if (wait_is_over) {
      // A thread that polls, by waits that are over when they begin, still lets its fibers advance.
      parking_.poll_beside_fibers(now);
      had_turn = true;
      continue;
    }
    if (more_to_publish) {
      continue;
    }
    if (stealable.lifo_version() != 0) {
      platform::yield_thread();  // to a thief inside of the queue, unless it was woken just now
      continue;
    }
    if (owner.finished()) {
      io->end_receives();  // here, since a ring obeys this thread only
      return;
    }
    if (stealing_.find_work(random_)) {
      continue;
    }
    if (trimmer.due(now)) {
      trimmer.step(*this, now, false);
      continue;
    }
    if (now >= pool_cooling::next(owner.pool)) {
      pool_cooling::step(owner.pool, now, false);
      continue;
    }
    if (!parking_.spin(now, word, before)) {
      parking_.park();
    } else if (take_incoming(); queue.has_ready()) {
      run_tick(now);  // without another look at all the rest, which was checked just now
    }
  }
}

void attach_reserved_stack_slow(worker* w, run_node* node) noexcept { attach_reserved_stack(w, node); }

namespace {
PIRN_NEVER_BOUNDED worker* switch_slow_plain(worker* w, run_node* self, run_node* next, post_switch_action* pending,
                                             const wait_options* wait) noexcept {
  if (w->forking()) {
    w->stop_forking();
  }
  const worker::thread_state own = w->save_thread_state(*static_cast<fiber_control*>(self));
  if (w->traced != 0) {
    trace_suspended(w, self, wait);
    trace_resumed(w, next);
  }
  w = switch_nodes(w, self, next, pending);
  w->restore_thread_state(own);
  return w;
}
}  // namespace

worker* switch_slow(worker* w, run_node* self, run_node* next, post_switch_action* pending,
                    const wait_options* wait) noexcept {
  if (w->bounded == worker::bounded_fiber::none) {
    return switch_slow_plain(w, self, next, pending, wait);
  }
  return static_cast<fiber_control*>(self)->bounded() ? switch_bounded(w, self, next, pending, wait)
                                                      : switch_small(w, self, next, pending, wait);
}

bool finds_switch_bounded() noexcept { return &switch_bounded != nullptr; }

worker* switch_with_exceptions(worker* w, run_node* self, run_node* next, post_switch_action* pending) noexcept {
  return switch_slow(w, self, next, pending, self->waits);
}

void yield_slow(worker* w) noexcept {
  run_node* const self = w->queue.running();
  if (w->budget_exhausted() && static_cast<fiber_control*>(self)->stealable() && w->idle->any()) [[unlikely]] {
    yield_stealable(w);
    return;
  }
  run_node* const next = w->budget_exhausted() ? w->queue.pause() : w->queue.rotate_slow();
  if (next == self) {
    return;
  }
  if (w->suspend_slow_mask->any()) {
    switch_slow(w, self, next, nullptr, nullptr);
  } else {
    switch_nodes(w, self, next, nullptr);
  }
}

void yield_on_thread() noexcept {
  if (worker* const hosted = caller_worker()) {
    hosted->probe.thread_was_woken();  // it may do something after this
    const platform::atomic<std::uint32_t> over{1};
    hosted->run_on_caller(&over, 0);
  }
  platform::yield_thread_hint();
}

void preempt(worker* w) noexcept {
  w->request_tick();
  if (w->consume_budget()) {
    yield_slow(w);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
