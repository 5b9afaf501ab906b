// The state that a runtime owns; shared by the sources of this layer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "detail/exiting.hpp"
#include "fiber/blocking_pool.hpp"
#include "fiber/deadlock_watch.hpp"
#include "fiber/engine_choice.hpp"
#include "fiber/monitor.hpp"
#include "fiber/time_slices.hpp"
#include "pirn/fiber/runtime.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Returns how many forks lie between the first process and this one. Throws std::system_error (memory).
unsigned generation_of_process();

/// Runs a user's `body` in a scheduler. There is no fiber, so `body` finds itself on a plain thread.
template <class F>
void as_plain_thread(F&& body) {
  struct absence {
    worker* const here = current_worker();
    absence() noexcept { platform::set_current_worker(nullptr); }
    ~absence() { platform::set_current_worker(here); }
  };
  const absence meanwhile;
  std::forward<F>(body)();
}

class runtime_state {
 public:
  explicit runtime_state(const runtime_options& requested);
  ~runtime_state();

  /// Returns whether the runtime is being destroyed and no fiber is left. Exact: `ended` is read first, and only rises,
  /// so equal sums mean that no fiber was alive in between.
  [[nodiscard]] bool finished() const noexcept;
  [[nodiscard]] runtime_statistics statistics() const noexcept;
  [[nodiscard]] worker_statistics statistics(const worker& of) const noexcept;
  void notify_all() noexcept;
  /// Returns the index of the first worker that has a separate thread.
  [[nodiscard]] std::size_t first_with_thread() const noexcept { return options.calling_thread ? 1 : 0; }
  /// Returns whether some worker has ready fibers that others may take. A hint, but behind a heavy fence none is
  /// missed.
  [[nodiscard]] bool has_stealable() const noexcept;
  /// Returns whether the LIFO slot of some worker is filled. A hint.
  [[nodiscard]] bool has_filled_lifo_slot() const noexcept;

  runtime_options options;
  const engine_choice engine_used;
  const unsigned generation = generation_of_process();
  /// Whether the first worker is the calling thread's and that thread does not wait: no other worker may count on it.
  platform::atomic<bool> caller_is_idle{options.calling_thread};
  guarded_pool& pool;
  std::shared_ptr<idle_workers> idle;
  std::vector<std::unique_ptr<worker>> workers;
  deadlock_watch deadlocks;
  blocking_pool blocking;  ///< after the workers, whose fibers its threads wake
  platform::atomic<unsigned> next_worker{0};
  platform::atomic<std::uint64_t> spawned_by_threads{0};
  platform::atomic<bool> stopping{false};
  const bool made_in_exit = platform::exiting();  ///< then its user destroys it; it is not left
  platform::atomic<bool> abandoned{false};        ///< the process ends, and fibers are left
  platform::atomic<std::uint32_t> started{0};
  platform::atomic<int> start_error{0};  ///< why a worker could not start
  std::optional<overflow_handler> overflow;
  std::optional<turn_monitor> monitor;
  std::optional<time_slices> slices;  ///< whether there are any does not change once workers run
};

/// Returns the position of the caller if it is on the stack of a body, else null. Takes some nanoseconds; two
/// microseconds where a body may be in a frame.
[[nodiscard]] arch::word position_in_body(agent& self) noexcept;
/// Records, while it lives, that the calling plain thread makes a call for a body that waits at this position. The
/// body, and the bodies through which its fiber resumed it, must not yield there.
class outer_body_of_thread {
 public:
  explicit outer_body_of_thread(arch::word position) noexcept;
  ~outer_body_of_thread();
  outer_body_of_thread(const outer_body_of_thread&) = delete;
  outer_body_of_thread& operator=(const outer_body_of_thread&) = delete;
};

/// Returns whether this process was forked since the runtime began.
bool is_forked(const runtime_state& used) noexcept;
/// Aborts with a message in such a process.
void check_not_forked(const runtime_state& used) noexcept;

/// Registers a runtime for dumps; see dump.cpp. Throws std::system_error for a dump_signal that cannot be caught.
void register_for_dump(runtime_state& state);
void unregister_for_dump(runtime_state& state) noexcept;
/// Begin and end the time in which `w` can be interrupted for a dump. Called from the thread of `w`.
void enter_dumps(worker& w) noexcept;
void leave_dumps(worker& w) noexcept;

/// Dumps the fibers of one runtime, as `runtime::dump`.
void dump_fibers(runtime_state& state, int descriptor) noexcept;
/// Returns whether the process has a handler for some signal that may come at any time, besides those for dumps.
bool handles_signals() noexcept;

/// Whether pirn's library has found `switch_bounded`, which the loader of a shared library looks up by name.
[[nodiscard]] bool finds_switch_bounded() noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
