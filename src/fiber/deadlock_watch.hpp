// The common part of the search for deadlocks by the workers of one runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pirn/fiber/detail/worker.hpp"
#include "pirn/fiber/expert/deadlock.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Counts the plain threads of the process that wait in a call of pirn without a deadline and were not woken yet.
class thread_census {
 public:
  void add() noexcept { state_.fetch_add(one_change + 1, platform::memory_order_seq_cst); }
  /// Called by the waker of the thread, before it wakes the thread.
  void remove() noexcept { state_.fetch_add(one_change - 1, platform::memory_order_seq_cst); }
  /// Returns a value that stays equal only if nothing changes in between.
  [[nodiscard]] std::uint64_t state() const noexcept { return state_.load(platform::memory_order_seq_cst); }
  [[nodiscard]] static std::uint32_t number(std::uint64_t state) noexcept { return static_cast<std::uint32_t>(state); }

 private:
  static constexpr std::uint64_t one_change = std::uint64_t{1} << 32;
  platform::atomic<std::uint64_t> state_{0};
};
extern thread_census waiting_threads;

/// Returns the fiber that holds the awaited object, null if it is unknown; only its block may be accessed. Called in
/// the thread of the waiting fiber's worker, while the fiber waits.
const fiber_control* holder_of(const wait_options& wait) noexcept;

/// A fact about two waits: wait number `wait` of `who` cannot end before the wait at the other end of the edge. Each
/// end is a fiber or a list of stops, which stands for its scope.
struct wait_edge {
  const void* from;
  const void* to;
  std::uint64_t to_wait;  ///< of the fiber at the other end; 0 for a scope
  const fiber_control* who;
  std::uint64_t number;  ///< of `who`
  std::uint64_t wait;
  wait_options options;  ///< of `who`
};

/// Describes a cycle in the present waits of the fibers of all runtimes; empty if there is no cycle. Only where no
/// thread runs meanwhile, so in an exploration. Throws std::bad_alloc.
[[nodiscard]] std::string describe_present_cycle();

class deadlock_watch {
 public:
  explicit deadlock_watch(runtime_state& owner) noexcept : owner_(owner) {}
  deadlock_watch(const deadlock_watch&) = delete;
  deadlock_watch& operator=(const deadlock_watch&) = delete;

  /// Returns whether a worker shall look for deadlocks.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool calls(const deadlock_probe& of, platform::time_point now) const noexcept {
    return now >= of.next_ || of.round_ != round_.load(platform::memory_order_relaxed);
  }
  [[nodiscard]] platform::duration delay() const noexcept;
  /// Returns the number of the present round, for a worker whose tick has just ended. The looks of all later rounds see
  /// the waits that began in the tick.
  [[nodiscard]] std::uint32_t round_after_tick() const noexcept {
    platform::light_fence();  // pairs with the heavy fence in `begin`
    return round_.load(platform::memory_order_relaxed);
  }
  [[nodiscard]] bool in_new_round(const deadlock_probe& of) const noexcept {
    return of.round_ != round_.load(platform::memory_order_acquire);
  }

  /// Begins a round, in which all workers look. If one has begun a short time ago, only returns when the next may
  /// begin.
  std::optional<platform::time_point> begin(const worker& by, platform::time_point now) noexcept;
  /// Looks at the fibers of `w`, from its scheduler, and reports a cycle.
  void look(worker& w) noexcept;

  enum class probe_result : std::uint8_t {
    moving,      ///< something of the runtime runs
    waiting,     ///< all stands still, but a fiber waits for time to pass or for the kernel, or no fiber exists
    foreign,     ///< all stands still, and only a thread or a signal that the runtime does not know may change that
    standstill,  ///< nothing can change that
  };
  /// Probes the workers. Called from the scheduler of `w`, which has looked and has nothing to do.
  [[nodiscard]] probe_result probe(const worker& w) noexcept;
  /// Returns whether all others sleep, have looked since they last ran a fiber, and are not late.
  [[nodiscard]] bool all_looked(const worker& by) const noexcept;
  void report_standstill(worker& by) noexcept;

  /// Whether a worker sleeps that would have looked if it had been the last to sleep. The last worker looks in its
  /// place.
  platform::atomic<bool> probe_requested{false};

 private:
  struct sleepers {
    probe_result what;
    std::uint64_t parks;  ///< of all: an equal number means that no worker was awake in between
  };
  [[nodiscard]] sleepers ask_others(const worker& by) const noexcept;
  [[nodiscard]] bool only_known_threads() noexcept;
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;
  void publish(const worker& w, std::vector<wait_edge> edges);
  [[nodiscard]] std::vector<wait_edge> find_cycle();
  [[nodiscard]] bool is_new(const std::vector<wait_edge>& cycle);
  void report(worker& by, deadlock::kind what, const std::vector<wait_edge>& cycle) noexcept;

  runtime_state& owner_;
  platform::atomic<std::uint32_t> round_{0};
  platform::atomic<platform::duration::rep> begun_{0};                      ///< when the last round began
  platform::atomic<std::uint64_t> reported_standstill_{~std::uint64_t{0}};  ///< 0 is that of a runtime of tasks alone
  platform::spinlock lock_;
  std::vector<std::vector<wait_edge>> edges_;                      ///< of each worker; under the lock, as the next
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reported_;  ///< number and wait of one fiber of each cycle
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
