// A worker: one OS thread with its run queue, timers, engine and stacks; and the switches between its fibers.
#pragma once

#include <memory>
#include <utility>

#include "pirn/fiber/detail/run_queue.hpp"
#include "pirn/fiber/detail/start_window.hpp"
#include "pirn/fiber/engine.hpp"
#include "pirn/fiber/timer.hpp"
#include "pirn/stack/guarded_pool.hpp"
#include "pirn/stack/overflow.hpp"

namespace pirn::inline PIRN_ABI {

namespace detail {

class runtime_state;

/// What the C++ ABI keeps per OS thread about exceptions in flight (Itanium C++ ABI, 2.2.2): the stack of caught ones
/// and the count of uncaught ones. It belongs to the fiber that threw.
struct exceptions_in_flight {
  void* caught = nullptr;
  unsigned uncaught = 0;
  /// Not zero if there are any.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t bits() const noexcept {
    return reinterpret_cast<std::uintptr_t>(caught) | uncaught;
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool any() const noexcept { return bits() != 0; }
};

class alignas(64) worker {
 public:
  worker(runtime_state& owner, unsigned index);
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker() { io->retire(); }

  // -- written and read by this worker's thread only
  run_queue queue;
  unsigned switches_left = 0;  ///< until the scheduler has a look at inbox, timers and engine; wraps when used up
  exceptions_in_flight* exceptions = nullptr;
  timer_queue timers;
  std::uint64_t next_id = 0;
  std::uint64_t last_id = 0;
  arch::context abandoned;  ///< where a fiber that has ended leaves the state of its last switch
  start_window starts;
  fiber_control* youngest = nullptr;  ///< list of all live fibers; a signal handler of this thread walks it
  guarded_pool::cache stacks;
  // -- written by this worker, read by others to find out whether all fibers have ended
  platform::atomic<std::uint64_t> spawned{0};
  platform::atomic<std::uint64_t> ended{0};
  platform::atomic<int> thread_id{0};  ///< the kernel's, while the thread runs; for dumps and debuggers
  // -- shared
  alignas(64) inbox incoming;
  // -- constant after start
  std::shared_ptr<engine> io;  ///< shared with descriptors that may outlive the runtime
  runtime_state& owner;
  unsigned index;
  platform::thread thread;

  /// The body of the worker's OS thread.
  void run() noexcept;
  /// Takes a ready fiber from a fiber of the same runtime.
  void hand_over(run_node* node) noexcept {
    if (incoming.push(node)) {
      io->notify();
    }
  }
  /// The same from any thread: the fiber may be the last one, and the runtime gone before this returns.
  void hand_over_from_outside(run_node* node) noexcept {
    const std::shared_ptr<engine> kept = io;
    if (incoming.push(node)) {
      kept->notify();
    }
  }

  /// Adds to, removes from the list of all live fibers. Each is one pointer store as seen by a handler that
  /// interrupts it and walks the list from the youngest.
  PIRN_ALWAYS_INLINE void list(fiber_control* f) noexcept { link(youngest, f); }
  PIRN_ALWAYS_INLINE void unlist(fiber_control* f) noexcept { unlink(youngest, f); }
  /// Keeps a fiber that has ended while nobody waited for it: a handle on this worker finds it so without an atomic
  /// operation, and the scheduler's next look announces it to all others.
  PIRN_ALWAYS_INLINE void keep_ended(fiber_control* f, std::uintptr_t outcome) noexcept {
    f->set_ended_here(outcome);
    link(unannounced_, f);
  }
  /// Takes such a fiber for its handle; returns its join_state.
  PIRN_ALWAYS_INLINE std::uintptr_t take_ended(fiber_control* f) noexcept {
    unlink(unannounced_, f);
    return f->ended_here();
  }
  /// Counts a switch. True when it is time for the scheduler to have a look. (This form is one instruction on memory
  /// and a jump on its carry.)
  [[nodiscard]] PIRN_ALWAYS_INLINE bool spend_switch() noexcept {
    return __builtin_sub_overflow(switches_left, 1U, &switches_left);
  }
  [[nodiscard]] bool switches_spent() const noexcept { return static_cast<int>(switches_left) < 0; }
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uint64_t make_id() noexcept {
    if (next_id == last_id) [[unlikely]] {
      reserve_ids();
    }
    return ++next_id;
  }
  PIRN_ALWAYS_INLINE void count(platform::atomic<std::uint64_t>& counter) noexcept {
    // Release: who sees the count sees what the fibers did. Only this worker writes, so no read-modify-write.
    counter.store(counter.load(platform::memory_order_relaxed) + 1, platform::memory_order_release);
  }

 private:
  static PIRN_ALWAYS_INLINE void link(fiber_control*& newest, fiber_control* f) noexcept {
    f->elder = newest;
    f->younger = nullptr;
    if (newest != nullptr) {
      newest->younger = f;
    }
    platform::signal_fence();
    newest = f;
  }
  static PIRN_ALWAYS_INLINE void unlink(fiber_control*& newest, fiber_control* f) noexcept {
    (f->younger != nullptr ? f->younger->elder : newest) = f->elder;
    if (f->elder != nullptr) {
      f->elder->younger = f->younger;
    }
  }
  void reserve_ids() noexcept;
  void announce_ended() noexcept;
  void take_incoming() noexcept;
  void adapt(platform::time_point now) noexcept;
  void resume_next() noexcept;

  fiber_control* unannounced_ = nullptr;  ///< ended fibers that only this worker knows to have ended, newest first
  int switches_per_look_ = 64;
  platform::time_point last_look_;
};

/// The worker of the calling OS thread, or null on a plain thread.
PIRN_ALWAYS_INLINE worker* current_worker() noexcept { return static_cast<worker*>(platform::current_worker()); }
PIRN_ALWAYS_INLINE fiber_control* running_fiber(const worker* w) noexcept {
  return static_cast<fiber_control*>(w->queue.running());
}

/// The second word of a switch: what the context that was switched out wants done on its behalf. Zero for nothing, the
/// address of a commit, or, if bit 0 is set, the address of the block of a fiber that has ended, and its join_state
/// in bits 1-3.
PIRN_ALWAYS_INLINE arch::word pending_end(fiber_control* f, std::uintptr_t outcome) noexcept {
  static_assert(alignof(worker) >= 64);  // and so are blocks
  return reinterpret_cast<arch::word>(f) | (outcome << 1) | 1;
}
void settle(arch::word pending) noexcept;

/// What every context does first when it is resumed.
PIRN_ALWAYS_INLINE worker* arrive(arch::word by, arch::word pending) noexcept {
  if (pending != 0) {
    settle(pending);
  }
  return reinterpret_cast<worker*>(by);
}

/// Switches from `self` to `next`, which the run queue has just made the running one; returns on the worker that
/// resumes `self`. The worker travels in a register.
PIRN_ALWAYS_INLINE worker* switch_nodes(worker* w, run_node* self, run_node* next, commit* pending) noexcept {
  auto by = reinterpret_cast<arch::word>(w);
  auto what = reinterpret_cast<arch::word>(pending);
  self->sanitizer.leave(next->sanitizer);
  arch::switch_to(self->state, next->state, by, what);
  self->sanitizer.arrive();
  return arrive(by, what);
}

/// The same where exceptions are in flight: they stay with `self`.
worker* switch_with_exceptions(worker* w, run_node* self, run_node* next, commit* pending) noexcept;

/// Takes the running fiber off the worker until somebody makes it ready again; `publish`, if any, runs once it is off.
PIRN_ALWAYS_INLINE worker* suspend(worker* w, const wait_options& what, commit* publish) noexcept {
  run_node* const self = w->queue.running();
  run_node* const next = w->spend_switch() ? w->queue.leave_to_scheduler() : w->queue.leave();
  self->waits = &what;
  if (w->exceptions->any()) [[unlikely]] {
    return switch_with_exceptions(w, self, next, publish);
  }
  return switch_nodes(w, self, next, publish);
}

/// The parts of a yield that are not its fast path: woken fibers, a look at the outside, exceptions in flight.
void yield_slow(worker* w) noexcept;

}  // namespace detail
}  // namespace pirn::inline PIRN_ABI
