// A worker: one OS thread with its run queue, timers, engine and stacks; and the switches between its fibers.
#pragma once

#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "pirn/context/arch_fiber.hpp"
#include "pirn/fiber/detail/block_cache.hpp"
#include "pirn/fiber/detail/deadlock_probe.hpp"
#include "pirn/fiber/detail/deferred_completions.hpp"
#include "pirn/fiber/detail/fairness.hpp"
#include "pirn/fiber/detail/fork_deque.hpp"
#include "pirn/fiber/detail/frame_cache.hpp"
#include "pirn/fiber/detail/idle_workers.hpp"
#include "pirn/fiber/detail/inbox.hpp"
#include "pirn/fiber/detail/parker.hpp"
#include "pirn/fiber/detail/stack_trimmer.hpp"
#include "pirn/fiber/detail/stealer.hpp"
#include "pirn/fiber/expert/engine.hpp"
#include "pirn/fiber/expert/timer.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "pirn/stack/expert/overflow.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

class runtime_state;
class coroutine_runner;

/// The state that the C++ ABI keeps per OS thread about exceptions in flight (Itanium C++ ABI, 2.2.2): the stack of
/// caught exceptions and the count of uncaught ones. It belongs to the fiber that threw.
struct exceptions_in_flight {
  void* caught = nullptr;
  unsigned uncaught = 0;
  /// Returns nonzero if there are any: in one load all but the lowest 16 bits of `caught`, since no object lies in the
  /// first 64 KiB, and the lowest 16 of `uncaught`.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t bits() const noexcept {
    static_assert(sizeof(void*) == 8 && std::endian::native == std::endian::little);
    std::uintptr_t both;
    __builtin_memcpy(&both, reinterpret_cast<const char*>(this) + 2, sizeof both);
    return both;
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool any() const noexcept { return bits() != 0; }
};

/// Counters of a worker; written by it alone.
struct worker_counters {
  platform::atomic<std::uint64_t> stolen{0};
  platform::atomic<std::uint64_t> steal_operations{0};
  platform::atomic<std::uint64_t> parks{0};
  platform::atomic<std::uint64_t> wakes{0};
  platform::atomic<std::uint64_t> trimmed{0};
  platform::atomic<std::uint64_t> switches{0};
  platform::atomic<std::size_t> ready{0};
  platform::atomic<platform::duration::rep> longest_wait{0};
};

/// Sentinels that make `any()` true, to force the slow path.
inline constexpr exceptions_in_flight force_slow_yield{nullptr, 1};
inline constexpr exceptions_in_flight force_slow_path{nullptr, 1};

class alignas(64) worker {
 public:
  worker(runtime_state& owner, unsigned index);
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();

  // -- written and read by this worker's thread only
  alignas(block_chunk::alignment) run_queue queue;  ///< aligned so that its scheduler's node is where no fiber's can be
  switch_budget budget;
  /// Keeps a yield off its fast path if it has bits: `suspend_slow_mask`, or `force_slow_yield` while there are fibers
  /// without a stack.
  const exceptions_in_flight* yield_slow_mask = &force_slow_yield;
  /// Keeps a suspension off its fast path if it has bits: `thread_exceptions`, or `force_slow_path`.
  const exceptions_in_flight* suspend_slow_mask = nullptr;
  timer_queue timers;
  std::uint64_t next_id = 0;
  std::uint64_t last_id = 0;
  guarded_pool::cache stacks;  ///< one is reserved for each fiber of this worker that has no stack yet
  block_cache blocks;
  frame_cache frames;
  std::unique_ptr<coroutine_runner> coroutines;  ///< null until they are needed
  stack_trimmer trimmer;
  exceptions_in_flight* thread_exceptions = nullptr;  ///< of its OS thread
  arch::word outer_body = 0;                          ///< the position given to run_in_outer_body
  unsigned mutexes_held = 0;                          ///< of pthread, held by the running fiber; see held_mutexes.cpp
  /// Whether the running fiber has a small stack, with a bound (`runs`) or checked, and whether it uses the worker's
  /// stack just now.
  enum class bounded_fiber : std::uint8_t { none, runs, checked, borrows } bounded = bounded_fiber::none;
  // -- written by the thread of the time slices too
  /// Whether the fibers have run for a time slice since the last tick. A hint: a stale `true` costs a yield, a stale
  /// `false` a part of a slice, and nothing else is read on its account. So relaxed accesses do.
  platform::atomic<bool> slice_over{false};
  // -- written by this worker, read by others to find out whether all fibers have ended
  platform::atomic<std::uint64_t> spawned{0};
  platform::atomic<std::uint64_t> ended{0};
  platform::atomic<int> thread_id{0};  ///< the kernel's, while the thread runs; for dumps and debuggers
  worker_counters counters;
  deadlock_probe probe;
  // -- written and read by this worker's thread, except for the thieves' part
  fork_state forks;
  // -- shared
  alignas(64) inbox incoming;
  /// The last time that a worker woke this one.
  platform::atomic<platform::time_point> last_remote_push{platform::time_point{}};
  alignas(64) stealable_queue stealable;
  // -- constant after start
  std::shared_ptr<engine> io;          ///< shared with descriptors that may outlive the runtime
  std::shared_ptr<idle_workers> idle;  ///< of the runtime; shared with threads that wake fibers
  runtime_state& owner;
  unsigned index;
  std::uintptr_t traced;  ///< the bit that marks its fibers as traced
  platform::thread thread;
  const void* scheduler_frame = nullptr;  ///< the outermost frame of the scheduler while that runs; for dumps

  /// The body of the worker's OS thread.
  void run() noexcept;
  /// For the worker of a thread that made its runtime: take possession of that thread, and give it back. Throws
  /// std::system_error (memory).
  void adopt_thread();
  void release_thread() noexcept;
  /// Runs its fibers on that thread, from a wait of the thread, until `word` is no longer `before`; without a word,
  /// until all fibers of the runtime have ended.
  void run_on_caller(const platform::atomic<std::uint32_t>* word, std::uint32_t before) noexcept;
  /// Wakes a sleeping worker, unless one is searching, for work that others may take now.
  void recruit_searcher() noexcept;
  /// Pushes a ready fiber or chain of tasks of this worker to its inbox. Called by a fiber of another worker of the
  /// runtime.
  template <class Entry>
  void push_remote(Entry* ready) noexcept {
    if (incoming.push(ready)) {
      last_remote_push.store(platform::now(), platform::memory_order_relaxed);
      idle->unpark(index);
    }
  }
  /// As `push_remote`, from any thread: the fiber may be the last one, and the runtime gone before this returns.
  template <class Entry>
  void inject(Entry* ready) noexcept {
    const std::shared_ptr<idle_workers> kept = idle;
    const unsigned here = index;
    if (incoming.push(ready)) {
      kept->unpark(here);
    }
  }

  /// Recomputes whether the running fiber must take the slow suspension path.
  void update_slow_masks() noexcept;
  /// Records that the running fiber is a stolen continuation that began at this position, on the stack of a body that
  /// others resume: it must not yield there. Null: it is not, or no longer.
  void run_in_outer_body(arch::word position) noexcept;
  /// Records that the running fiber holds `count` pthread mutexes.
  void hold_mutexes(unsigned count) noexcept;
  /// Called when the running fiber suspends: the next one holds no mutex. Returns how many it held, and reports any.
  unsigned leave_mutexes(const fiber_control& self) noexcept;
  /// The state of the running fiber that its OS thread or its worker holds.
  struct thread_state {
    exceptions_in_flight exceptions;
    unsigned mutexes;
    arch::word body;
  };
  /// Called around a switch of the running fiber; the worker that resumes it restores.
  [[nodiscard]] thread_state save_thread_state(const fiber_control& self) noexcept {
    const exceptions_in_flight own = std::exchange(*thread_exceptions, {});
    const arch::word body = outer_body;
    if (body != 0) {
      run_in_outer_body(0);
    }
    return {own, leave_mutexes(self), body};
  }
  void restore_thread_state(const thread_state& of) noexcept {
    *thread_exceptions = of.exceptions;
    if (of.mutexes != 0) {
      hold_mutexes(of.mutexes);
    }
    if (of.body != 0) {
      run_in_outer_body(of.body);
    }
  }

  /// Makes a stealable fiber of this worker ready for any worker. Its own thread only.
  void push_stealable(fiber_control* f) noexcept;
  /// As `push_stealable`, from any other thread: the fiber may be the last one, and the runtime gone before this
  /// returns.
  void inject_stealable(fiber_control* f) noexcept;
  /// Puts a stealable fiber that was just woken into the LIFO slot: it is likely to run here. Its own thread only.
  void push_lifo_slot(fiber_control* f) noexcept;
  /// Makes this worker the home of a stealable fiber of another one that no longer waits. False if that is not allowed.
  [[nodiscard]] bool adopt_remote(fiber_control* f) noexcept;
  /// Makes a fiber that has not begun, and that any worker may take, the next to run here; it stays here. False if it
  /// has begun, is elsewhere, or a thief is inside the queue. Its own thread only.
  [[nodiscard]] bool begin_next(fiber_control* f) noexcept;
  /// Returns the node to run instead of `next`: if that is the scheduler, a stealable fiber that is ready here. Not on
  /// bounded stacks.
  [[nodiscard]] PIRN_ALWAYS_INLINE run_node* or_stealable(run_node* next) noexcept {
    return next == queue.scheduler() && !budget_exhausted() ? stealable_or_scheduler() : next;
  }

  /// Defers the completion of a fiber without waiters. A handle on this worker finds it so without an atomic operation.
  /// The scheduler's next tick but one, or the next one with nothing else to do, publishes it to all others.
  PIRN_ALWAYS_INLINE void defer_completion(fiber_control* f, std::uintptr_t outcome) noexcept {
    completions_.defer(f, outcome);
  }
  /// Claims such a fiber for its handle; returns its join_state.
  PIRN_ALWAYS_INLINE static std::uintptr_t claim_deferred(fiber_control* f) noexcept {
    return deferred_completions::claim(f);
  }
  /// Record that a fiber waits to start and has no stack; that one has started, perhaps the last.
  PIRN_ALWAYS_INLINE void has_fiber_to_start() noexcept {
    if (yield_slow_mask != &force_slow_yield) {
      yield_slow_mask = &force_slow_yield;
    }
  }
  PIRN_ALWAYS_INLINE void has_started_one() noexcept {
    if (stacks.reserved() == 0) {
      yield_slow_mask = suspend_slow_mask;
    }
  }

  /// Whether the running fiber may have continuations open.
  [[nodiscard]] bool forking() const noexcept { return forks.inherited != nullptr; }
  /// Lets the running fiber have continuations open, and makes room for one more.
  void start_forking(fiber_control& self) noexcept;
  /// Ends that: `self` is about to leave. Makes what it has open ready for any worker.
  void stop_forking() noexcept;
  /// Makes a fiber, ready for any worker, of each open continuation.
  void publish_continuations() noexcept;
  /// Opens a continuation of the running fiber to thieves.
  PIRN_ALWAYS_INLINE void push_continuation(deque_slot* at, fork_point* point) noexcept {
    forks.open.push(at, point);
    // Pairs with the heavy fence of a worker that falls asleep. Where that wants more here, `wake` is never zero, and
    // the call makes a light fence.
    platform::signal_fence();
    if (forks.wake->load(platform::memory_order_relaxed) != 0) [[unlikely]] {
      recruit_searcher();
    }
  }
  /// Gives back the stacks that are kept for first halves.
  void give_fork_stacks_back() noexcept;

  /// As the functions of `switch_budget`.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool consume_budget() noexcept { return budget.consume(); }
  [[nodiscard]] bool budget_exhausted() const noexcept { return budget.exhausted(); }
  void request_tick() noexcept { budget.request_tick(); }
  /// Makes the next switch poll the engine, for a fiber that yields until the kernel has ended a request.
  void poll_soon() noexcept {
    parking_.poll_at_next_tick();
    request_tick();
  }
  void limit_budget(unsigned switches) noexcept { budget.limit(switches); }
  /// Whether fibers give way soon at present, so that what waits for the next tick does not wait for their work.
  [[nodiscard]] bool turns_are_short() const noexcept { return tick_budget_ >= 8; }
  /// Whether a stack, a block and a number for one more fiber are at hand.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool ready_to_spawn() const noexcept {
    return stacks.has_unreserved() && blocks.has_one() && next_id != last_id;
  }
  /// Fetches them. False if there are no stacks or there is no memory.
  [[nodiscard]] bool get_ready_to_spawn() noexcept;
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uint64_t make_id() noexcept {
    if (next_id == last_id) [[unlikely]] {
      reserve_ids();
    }
    return ++next_id;
  }
  PIRN_ALWAYS_INLINE void count(platform::atomic<std::uint64_t>& counter) noexcept {
    // Release: a reader of the count sees what the fibers did. Only this worker writes, so no read-modify-write.
    counter.store(counter.load(platform::memory_order_relaxed) + 1, platform::memory_order_release);
  }

 private:
  friend class stealer;
  friend class parker;
  void begin() noexcept;
  void end() noexcept;
  [[nodiscard]] PIRN_NOINLINE run_node* stealable_or_scheduler() noexcept;
  /// Runs fibers until all fibers of the runtime have ended, or the word is no longer `before`.
  void loop(const platform::atomic<std::uint32_t>* word, std::uint32_t before) noexcept;
  void reserve_ids() noexcept;
  void take_incoming() noexcept;
  void adapt(platform::time_point now) noexcept;
  /// Runs ready fibers until the budget of this tick is exhausted.
  void run_tick(platform::time_point now) noexcept;
  void resume_next() noexcept;
  /// Counts the fibers that are ready.
  void count_ready(platform::time_point now) noexcept;
  /// Takes one of the worker's stealable fibers into the ring, where no other worker can take it.
  void take_one_stealable() noexcept;
  /// Limits the budget so that the remaining stealable fibers have their turns beside the ring.
  void limit_budget_for_stealable() noexcept;
  /// Moves the stealable fibers of the ring to where others can steal them. Its thread then does something else.
  void publish_local_work() noexcept;
  /// Takes the outermost open continuation of another worker.
  bool steal_continuation(worker& victim) noexcept;

  static constexpr int max_switch_budget = 1024;
  static_assert(timer_queue::room >= max_switch_budget);

  deferred_completions completions_{max_switch_budget};
  int tick_budget_ = 64;
  std::uint64_t last_told_ = 0;  ///< the last fiber reported for suspending with a mutex
  stealer stealing_;
  parker parking_;
  platform::time_point last_tick_;
  platform::time_point next_count_;
  platform::random random_{platform::random_seed()};
  std::optional<overflow_thread> overflow_of_caller_;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(worker, queue) == 0, "running_node::here looks there");
#pragma GCC diagnostic pop

inline const fiber_control* owner_mark::owner() const noexcept {
  const std::uintptr_t node = owner_.load(platform::memory_order_acquire) & ~contended_bit;
  static_assert(run_queue::scheduler_offset() % block_chunk::alignment != 0);
  const bool is_fiber = node % block_chunk::alignment == 0;
  return is_fiber ? static_cast<const fiber_control*>(reinterpret_cast<const run_node*>(node)) : nullptr;
}

/// Returns the worker that runs on the calling plain thread whenever that waits, or null.
worker* caller_worker() noexcept;
/// Returns the worker of the calling OS thread, or null on a plain thread.
PIRN_ALWAYS_INLINE worker* current_worker() noexcept { return static_cast<worker*>(platform::current_worker()); }
PIRN_ALWAYS_INLINE fiber_control* running_fiber(const worker* w) noexcept {
  return static_cast<fiber_control*>(w->queue.running());
}
/// Returns `who` as a fiber, if it is one that is pinned to `here`; else null.
PIRN_ALWAYS_INLINE fiber_control* pinned_fiber(agent* who, const worker* here) noexcept {
  if (who->kind() != agent_kind::fiber) {
    return nullptr;
  }
  auto& f = static_cast<fiber_control&>(*who);  // a reference: for a pointer gcc 12 assumes null, and warns
  return f.is_pinned_to(here) ? &f : nullptr;
}

/// The second word of a switch: an action on behalf of the context that was switched out. Zero for none, the address of
/// a post_switch_action, or, if bit 0 is set, the address of the block of a fiber that has ended, and its join_state in
/// bits 1-3.
PIRN_ALWAYS_INLINE arch::word pending_end(fiber_control* f, std::uintptr_t outcome) noexcept {
  static_assert(alignof(worker) >= 64);  // and so are blocks
  return reinterpret_cast<arch::word>(f) | (outcome << 1) | 1;
}
PIRN_NEVER_BOUNDED void run_post_switch(arch::word pending) noexcept;
/// As `run_post_switch`, at the beginning of a fiber.
PIRN_ASIDE PIRN_NEVER_BOUNDED void run_post_switch_at_entry(arch::word pending) noexcept;

/// The first step of every context that is resumed.
PIRN_ALWAYS_INLINE worker* finish_switch(arch::word by, arch::word pending) noexcept {
  if (pending != 0) {
    run_post_switch(pending);
  }
  return reinterpret_cast<worker*>(by);
}

/// Gives a fiber that is about to start the stack that was reserved for it.
PIRN_ALWAYS_INLINE void attach_reserved_stack(worker* w, run_node* node) noexcept {
  auto* const f = static_cast<fiber_control*>(node);
  f->attach_stack(w->stacks.allocate_reserved());
  w->has_started_one();
  f->sanitizer.create(f->memory.limit(), f->memory.size(), "");
}
PIRN_NEVER_BOUNDED void attach_reserved_stack_slow(worker* w, run_node* node) noexcept;

/// Switches from `self` to `next`, which the run queue has just made the running one and which has started; returns on
/// the worker that resumes `self`. The worker travels in a register. With a `word_slot` the resumer of `self` may give
/// it a word there, and `next` gets the word in it if it has suspended so.
PIRN_ALWAYS_INLINE worker* switch_started(worker* w, run_node* self, run_node* next, post_switch_action* pending,
                                          arch::word* word_slot = nullptr) noexcept {
  auto by = reinterpret_cast<arch::word>(w);
  auto what = reinterpret_cast<arch::word>(pending);
  self->sanitizer.leave(next->sanitizer);
  if (word_slot != nullptr) {
    arch::switch_to_with_word(self->state, next->state, by, what, *word_slot);
  } else {
    arch::switch_to(self->state, next->state, by, what);
  }
  self->sanitizer.arrive();
  return finish_switch(by, what);
}

/// As `switch_started`, to any ready node.
PIRN_ALWAYS_INLINE worker* switch_nodes(worker* w, run_node* self, run_node* next, post_switch_action* pending,
                                        arch::word* word_slot = nullptr) noexcept {
  if (next->state.pc == nullptr) [[unlikely]] {
    attach_reserved_stack_slow(w, next);
  }
  return switch_started(w, self, next, pending, word_slot);
}

/// As `switch_nodes`, if exceptions are in flight, which stay with `self`, or the slow path is forced.
worker* switch_slow(worker* w, run_node* self, run_node* next, post_switch_action* pending,
                    const wait_options* wait) noexcept;
/// As `switch_slow`, for a fiber with a bounded stack. Weak, since pirn::bounded defines it: without that library there
/// is no such fiber.
__attribute__((weak)) worker* switch_bounded(worker* w, run_node* self, run_node* next, post_switch_action* pending,
                                             const wait_options* wait) noexcept;
/// As `switch_slow`, for a fiber on a small stack that is checked.
PIRN_NEVER_BOUNDED worker* switch_small(worker* w, run_node* self, run_node* next, post_switch_action* pending,
                                        const wait_options* wait) noexcept;
/// As `switch_slow`, for a fiber that waits.
worker* switch_with_exceptions(worker* w, run_node* self, run_node* next, post_switch_action* pending) noexcept;

// Report events to the runtime's tracer, if it has one. `wait` is null for a yield.
void trace_spawned(fiber_control* f) noexcept;
void trace_woken(fiber_control* f) noexcept;
void trace_suspended(worker* w, run_node* self, const wait_options* wait) noexcept;
void trace_resumed(worker* w, run_node* next) noexcept;
void trace_ended(worker* w, fiber_control* f) noexcept;

/// The slow path of a yield: fibers woken or not started, a due tick, exceptions in flight.
void yield_slow(worker* w) noexcept;
/// The yield of a plain thread: if it is that of a worker too (`runtime_options::calling_thread`), its fibers run.
PIRN_NEVER_BOUNDED void yield_on_thread() noexcept;
/// Makes the running fiber, whose time slice is over, yield to the scheduler.
void preempt(worker* w) noexcept;
/// A safe point of a fiber on `w`: it yields if its time slice is over.
PIRN_ALWAYS_INLINE void preemption_point(worker* w) noexcept {
  if (w->slice_over.load(platform::memory_order_relaxed) || platform::preempts_here()) [[unlikely]] {
    preempt(w);
  }
}
/// Takes the running fiber, which is stealable, off the worker and makes it ready for any.
PIRN_NEVER_BOUNDED void yield_stealable(worker* w) noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
