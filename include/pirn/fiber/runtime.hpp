// The runtime: workers that run fibers.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "pirn/fiber/expert/deadlock.hpp"
#include "pirn/fiber/expert/statistics.hpp"
#include "pirn/fiber/expert/trace.hpp"
#include "pirn/fiber/fiber.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How many workers a runtime has, and how they behave.
struct runtime_options {
  /// The number of OS threads that run fibers; 0 for the number of CPUs that the calling thread may use.
  unsigned workers = 0;
  /// Makes the calling thread, which must be a plain one, worker 0. It runs fibers whenever it waits in a call of pirn
  /// (`run`, `fiber::join`, a lock, a channel ...), until that wait ends. Then they stand still, except those that may
  /// run on another worker. Only this thread may destroy the runtime. While the process has no other thread nothing
  /// needs to be atomic, which makes locks, channels and wake-ups about twice as fast. That is so with one worker, if
  /// no library has threads.
  bool calling_thread = false;
  /// Pins worker i to the i-th CPU that the thread which makes the runtime may use (see sched_getaffinity), but does
  /// not pin that thread itself. With more workers than such CPUs the constructor throws std::system_error.
  bool pin_workers = false;
  /// Which engine the workers use. `runtime::dump` says which one runs, and why.
  engine_kind engine = engine_kind::automatic;
  /// Bytes of stack of a fiber that does not ask for another size.
  std::size_t stack_size = default_stack_size;
  /// Where stacks come from; null for the pool of the whole process. Must outlive the runtime and all its handles.
  guarded_pool* stacks = nullptr;
  /// How many fibers just woken may run in a row, newest first, while others are ready. With 0 all run first in first
  /// out.
  unsigned lifo_turns = 48;
  /// How many turns in a row fibers of high priority may have while others are ready.
  unsigned high_priority_turns = 32;
  /// How long a fiber must be suspended before the memory that its stack no longer uses is given back: whole pages
  /// below the live part. It may take up to twice as long. Not positive for never; then only `trim` does it.
  time_span trim_after{};
  /// How long at most an idle worker waits awake for a fiber that another thread or worker makes ready, before it
  /// sleeps in its engine. Meanwhile neither side pays for a wake-up: some microseconds on an idle CPU, tens or
  /// hundreds on a virtual one. It waits about as long as its wake-ups have taken. After each useless wait it goes to
  /// sleep at once twice as often as before, up to 255 times, or until it is woken so soon that it should not have
  /// slept. If there are more workers than CPUs they never wait awake. 0 for never.
  time_span idle_spin = std::chrono::microseconds(500);
  /// How many OS threads there may be for `blocking` at a time; with 0 it throws.
  unsigned max_blocking_threads = 512;
  /// How long such a thread stays without work.
  time_span blocking_idle_time = std::chrono::seconds(10);
  /// Whether a stack overflow is reported (see pirn/stack/expert/overflow.hpp); with false pirn leaves SIGSEGV alone.
  bool report_overflow = true;
  /// Makes each worker's engine, in place of the engines that `engine` names. Null for those.
  std::function<std::unique_ptr<pirn::engine>()> make_engine = {};
  /// A signal that prints all fibers to standard error, as `dump` does, for instance SIGUSR1; 0 for none.
  int dump_signal = 0;
  /// How long a fiber may keep its worker before that is reported on standard error, with the fiber's backtrace: once
  /// for each such turn, after at most twice this time. 0 for any time. Otherwise an extra thread looks twice in this
  /// time and interrupts workers that seem to be kept (SIGURG, as for a dump).
  time_span stall_threshold{};
  /// How long the fibers of a worker may run before the running one yields at its next safe point: at
  /// `this_fiber::preemption_point()`, or in a call of pirn that is a suspension point but need not wait
  /// (docs/fibers.md lists them). It yields after one and a half slices at most, plus the time to that point. 0 for
  /// never. Otherwise an extra thread looks twice in this time while a worker is awake.
  time_span time_slice{};
  /// Called for all events of its fibers; see pirn/fiber/expert/trace.hpp. Null costs nothing; with a tracer each
  /// switch takes about 0.1 us more, and a fiber keeps its stack until it is joined.
  tracer trace = {};
  /// Called for each deadlock; see pirn/fiber/expert/deadlock.hpp. Null for `exit_on_deadlock`.
  deadlock_handler on_deadlock = {};
  /// How long all fibers must have stood still, or a worker been busy, before the runtime looks for deadlocks. Longer
  /// with many fibers, so that the search takes at most a thousandth of the time. 0 for never.
  time_span deadlock_delay = std::chrono::seconds(1);
};

/// Owns workers. A fiber stays on the worker where it began unless it is migratable. Any thread or fiber may call the
/// members.
class runtime {
 public:
  /// Starts the workers. Throws std::system_error (threads, file descriptors, memory; not_supported under a hardware
  /// shadow stack; operation_not_permitted for `calling_thread` in a fiber, device_or_resource_busy if the thread
  /// already has such a runtime).
  explicit runtime(const runtime_options& options = {});
  /// Waits for all fibers to end, then for the workers. Must not be called by one of its fibers. In `exit`, which a
  /// return from main calls for static objects, it does not wait if there are fibers left: they do not run again then.
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Spawns `body` as a new fiber of this runtime, as the free functions of the same names do.
  template <class F>
  fiber spawn(F&& body, const spawn_options& options = {}) {
    std::error_code error;
    detail::fiber_control* const f = detail::launch(*state_, std::forward<F>(body), options, error);
    if (f == nullptr) {
      detail::throw_no_fiber(error);
    }
    return fiber(f);
  }
  /// As `spawn`, but returns the error, as the free function `try_spawn` does.
  template <class F>
  [[nodiscard]] std::expected<fiber, std::error_code> try_spawn(F&& body, const spawn_options& options = {}) {
    std::error_code error;
    if (auto* const f = detail::launch(*state_, std::forward<F>(body), options, error)) {
      return fiber(f);
    }
    return std::unexpected(error);
  }

  /// Runs `body` as a fiber and waits for it; returns its result or rethrows its exception.
  template <class F>
  std::invoke_result_t<F> run(F&& body) {
    using result = std::invoke_result_t<F>;
    if constexpr (std::is_void_v<result>) {
      spawn([&body] { std::forward<F>(body)(); }).join();
    } else if constexpr (std::is_reference_v<result>) {
      std::remove_reference_t<result>* place = nullptr;
      spawn([&body, &place] {
        result value = std::forward<F>(body)();
        place = std::addressof(value);
      }).join();
      return static_cast<result>(*place);
    } else {
      std::optional<result> value;
      spawn([&body, &value] { value.emplace(std::forward<F>(body)()); }).join();
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): had the fiber thrown, join would have
      return std::move(*value);
    }
  }

  /// Prints every live fiber (name, number, state, what it waits for, backtrace) to a file descriptor. Works while
  /// fibers run, even if one never yields: a signal (SIGURG) interrupts each worker. Not async-signal-safe.
  void dump(int descriptor = 2) noexcept;
  /// Asks each worker to give back, before it next sleeps, the memory that its suspended fibers no longer use, even if
  /// they were suspended only just now. Returns at once.
  void trim() noexcept;
  /// Returns the statistics of all workers together.
  [[nodiscard]] runtime_statistics statistics() const noexcept;
  /// Returns the statistics of one worker. Throws std::out_of_range.
  [[nodiscard]] worker_statistics statistics(std::size_t worker) const;

 private:
  friend class scope;
  detail::runtime_state* state_;  ///< owned, unless the process ended before its fibers
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
