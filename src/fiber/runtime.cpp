// The life of a runtime: start and end of its workers, statistics, and where new fibers are placed.
#include "pirn/fiber/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "detail/exiting.hpp"
#include "fiber/runtime_state.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/detail/left_by_exit.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

namespace {

runtime_options completed(runtime_options options) {
  if (options.workers == 0) {
    options.workers = platform::available_cpus();
  }
  if (const unsigned cpus = platform::available_cpus(); platform::exploring || cpus == 1 || cpus < options.workers) {
    options.idle_spin = {};  // the awaited thread may need this very CPU
  }
  if (arch::shadow_stack_active()) {
    throw std::system_error(std::make_error_code(std::errc::not_supported),
                            "pirn: the kernel checks returns against a hardware shadow stack, which a context switch "
                            "cannot follow; start the program with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off");
  }
  return options;
}

/// Names the fiber on a stack, for the report of an overflow: the fiber that this worker runs.
std::size_t describe_fiber(const void* limit, const void* /*top*/, const void* /*fault*/, char* buffer,
                           std::size_t size) noexcept {
  const worker* const w = current_worker();
  if (w == nullptr || !w->queue.runs_fiber()) {
    return 0;
  }
  const fiber_control* const f = running_fiber(w);
  if (!f->has_on_stack(limit) && !w->forks.open.on_stack(limit)) {
    return 0;
  }
  const int length =
      std::snprintf(buffer, size, "fiber %llu \"%s\"", static_cast<unsigned long long>(f->number()), f->name());
  return length < 0 ? 0 : std::min(static_cast<std::size_t>(length), size);
}

void run_worker(void* raw) { static_cast<worker*>(raw)->run(); }

/// Begins worker 0 on this thread, if it runs there; `release_calling_thread` ends it.
void adopt_calling_thread(runtime_state& state) {
  if (!state.options.calling_thread) {
    return;
  }
  constexpr const char* text = "pirn: a runtime on the calling thread";
  if (current_worker() != nullptr) {
    throw std::system_error(std::make_error_code(std::errc::operation_not_permitted), text);
  }
  if (caller_worker() != nullptr) {
    throw std::system_error(std::make_error_code(std::errc::device_or_resource_busy), text);
  }
  state.workers[0]->adopt_thread();
  state.started.fetch_add(1, platform::memory_order_release);
}

void release_calling_thread(runtime_state& state) noexcept {
  if (state.options.calling_thread) {
    state.workers[0]->release_thread();
  }
}

}  // namespace

runtime_state::runtime_state(const runtime_options& requested)
    : options(completed(requested)),
      engine_used(choose_engine(options)),
      pool(requested.stacks != nullptr ? *requested.stacks : default_stack_pool()),
      idle(std::make_shared<idle_workers>(options.workers)),
      deadlocks(*this),
      blocking(options.max_blocking_threads, options.blocking_idle_time) {
  if (options.report_overflow && !platform::exploring) {
    overflow.emplace();
    set_stack_describer(&describe_fiber);
  }
  workers.reserve(options.workers);
  for (unsigned i = 0; i < options.workers; ++i) {
    workers.push_back(std::make_unique<worker>(*this, i));
  }
  if (options.time_slice > platform::duration::zero() && !platform::exploring) {  // see `sim::faults::preempt`
    slices.emplace(*this, options.time_slice);
  }
}

runtime_state::~runtime_state() = default;

bool runtime_state::finished() const noexcept {
  if (!stopping.load(platform::memory_order_acquire)) {
    return false;
  }
  // Pairs with itself. If the last fibers of two workers end at the same time, one worker must see that both have: each
  // has counted its own before.
  platform::heavy_fence();
  return statistics().live_fibers == 0;
}

runtime_statistics runtime_state::statistics() const noexcept {
  runtime_statistics result;
  result.workers = workers.size();
  // Ended fibers are read first: `finished` relies on it.
  std::uint64_t ended = 0;
  for (const auto& w : workers) {
    ended += w->ended.load(platform::memory_order_acquire);
  }
  result.spawned = spawned_by_threads.load(platform::memory_order_acquire);
  for (const auto& w : workers) {
    result.spawned += w->spawned.load(platform::memory_order_acquire);
  }
  result.live_fibers = result.spawned - ended;
  result.blocking_threads = blocking.threads();
  return result;
}

worker_statistics runtime_state::statistics(const worker& of) const noexcept {
  const auto now = [](const platform::atomic<std::uint64_t>& counter) {
    return counter.load(platform::memory_order_relaxed);
  };
  return {.spawned = now(of.spawned),
          .ended = now(of.ended),
          .steal_operations = now(of.counters.steal_operations),
          .stolen = now(of.counters.stolen),
          .parks = now(of.counters.parks),
          .wakes = now(of.counters.wakes),
          .trimmed = now(of.counters.trimmed),
          .switches = now(of.counters.switches),
          .ready = of.counters.ready.load(platform::memory_order_relaxed),
          .overflows = of.io->overflows(),
          .longest_wait = platform::duration(of.counters.longest_wait.load(platform::memory_order_relaxed))};
}

void runtime_state::notify_all() noexcept {
  for (const auto& w : workers) {
    w->idle->unpark(w->index);
  }
}

stack_result stack_for_fiber(worker* here, runtime_state& owner, std::size_t stack_size) noexcept {
  if (stack_size == 0) {
    stack_size = owner.options.stack_size;
  }
  if (stack_size < min_stack_bytes) {
    return {stack{}, stack_error::too_small};
  }
  if (platform::spawn_fails()) {
    return {stack{}, stack_error::out_of_memory};
  }
  if (here != nullptr && stack_size == owner.options.stack_size) {
    if (const stack_result found = here->stacks.allocate()) {
      return found;
    }
    // All stacks that the worker may keep are reserved, or there is an error, which the pool will report.
  }
  return owner.pool.allocate(stack_size);
}

worker* choose_worker(worker* here, runtime_state& owner, int which) noexcept {
  const bool unnamed = which == spawn_options::current_worker || which == spawn_options::any_worker;
  if (unnamed && here != nullptr) {
    return here;
  }
  const std::size_t count = owner.workers.size();
  if (unnamed) {
    return owner.workers[owner.next_worker.fetch_add(1, platform::memory_order_relaxed) % count].get();
  }
  return which >= 0 && static_cast<std::size_t>(which) < count ? owner.workers[static_cast<std::size_t>(which)].get()
                                                               : nullptr;
}

void launch_slow(worker* here, worker* to, fiber_control* f) noexcept {
  if (here != nullptr) {
    here->count(here->spawned);
  } else {
    to->owner.spawned_by_threads.fetch_add(1, platform::memory_order_release);
  }
  check_not_forked(to->owner);
  if (to == here) {
    f->stealable() ? to->push_stealable(f) : to->queue.push(f);
  } else if (!f->stealable()) {
    to->inject(f);
  } else {
    to->inject_stealable(f);
  }
}

namespace {

constinit platform::atomic<bool> exit_has_left_fibers{false};

/// Returns whether the process is about to end while there are fibers. They may wait for events that no longer come,
/// one of them may have called exit, and destructors of static objects run beside them. Then the runtime stays, and its
/// workers begin no other tick. It also stays in a process made by fork, which has none of the workers.
bool abandoned_by_exit(runtime_state& state) noexcept {
  if ((state.statistics().live_fibers == 0 && !is_forked(state)) || state.made_in_exit || !platform::exiting()) {
    return false;
  }
  state.abandoned.store(true, platform::memory_order_release);
  exit_has_left_fibers.store(true, platform::memory_order_release);
  if (!is_forked(state)) {
    state.notify_all();
  }
  return true;
}

}  // namespace

bool fibers_are_left() noexcept { return exit_has_left_fibers.load(platform::memory_order_acquire); }

}  // namespace detail

runtime::runtime(const runtime_options& options) : state_(nullptr) {
  auto state = std::make_unique<detail::runtime_state>(options);
  state_ = state.get();
  // Before any thread is started, which would have to be ended if this throws.
  detail::register_for_dump(*state_);
  auto& workers = state_->workers;
  try {
    detail::adopt_calling_thread(*state_);
  } catch (...) {
    detail::unregister_for_dump(*state_);
    throw;
  }
  std::size_t running = state_->first_with_thread();
  std::error_code error;
  const char* what = "pirn: cannot start a worker";
  for (std::size_t i = running; i < workers.size(); ++i) {
    const auto& w = workers[i];
    char name[16];
    static_cast<void>(std::snprintf(name, sizeof name, "pirn-%u", w->index));
    error = w->thread.start(&detail::run_worker, w.get(), name);
    if (error) {
      break;
    }
    ++running;
    if (options.pin_workers) {
      const std::optional<unsigned> cpu = platform::available_cpu(w->index);
      error = cpu ? w->thread.pin(*cpu) : std::make_error_code(std::errc::invalid_argument);
      if (error) {
        what = cpu ? "pirn: cannot pin a worker" : "pirn: more workers to be pinned than CPUs that the process may use";
        break;
      }
    }
  }
  while (!error && state_->started.load(platform::memory_order_acquire) < workers.size()) {
    const std::uint32_t seen = state_->started.load(platform::memory_order_acquire);
    if (seen < workers.size()) {
      platform::futex_wait(state_->started, seen);
    }
  }
  if (!error) {
    error = std::make_error_code(static_cast<std::errc>(state_->start_error.load(platform::memory_order_acquire)));
  }
  if (!error && options.stall_threshold > platform::duration::zero()) {
    error = state_->monitor.emplace(*state_, options.stall_threshold).start();
  }
  if (!error && state_->slices) {
    error = state_->slices->start();
    if (error && state_->monitor) {
      state_->monitor->stop();
    }
  }
  if (error) {
    state_->stopping.store(true, platform::memory_order_release);
    state_->notify_all();
    for (std::size_t i = state_->first_with_thread(); i < running; ++i) {
      workers[i]->thread.join();
    }
    detail::release_calling_thread(*state_);
    detail::unregister_for_dump(*state_);
    throw std::system_error(error, what);
  }
  static_cast<void>(state.release());
}

runtime::~runtime() {
  if (detail::abandoned_by_exit(*state_)) {
    return;
  }
  detail::check_not_forked(*state_);
  if (const detail::worker* const w = detail::current_worker(); w != nullptr && &w->owner == state_) {
    detail::fail_contract("a runtime is being destroyed by one of its fibers, which could never end");
  }
  const bool here = state_->options.calling_thread;
  if (here && detail::caller_worker() != state_->workers[0].get()) {
    detail::fail_contract("a runtime on the calling thread is being destroyed by another thread");
  }
  state_->stopping.store(true, platform::memory_order_release);
  state_->notify_all();
  if (here) {
    state_->workers[0]->run_on_caller(nullptr, 0);
    state_->notify_all();
  }
  detail::waiting_threads.add();
  for (std::size_t i = state_->first_with_thread(); i < state_->workers.size(); ++i) {
    state_->workers[i]->thread.join();
  }
  detail::waiting_threads.remove();
  if (state_->monitor) {
    state_->monitor->stop();
  }
  if (state_->slices) {
    state_->slices->stop();
  }
  detail::release_calling_thread(*state_);
  detail::unregister_for_dump(*state_);
  delete state_;
}

void runtime::trim() noexcept {
  for (const auto& w : state_->workers) {
    w->trimmer.request();
    w->idle->unpark(w->index);
  }
}

runtime_statistics runtime::statistics() const noexcept { return state_->statistics(); }

worker_statistics runtime::statistics(std::size_t worker) const {
  return state_->statistics(*state_->workers.at(worker));
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
