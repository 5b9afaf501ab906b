// The part of one worker in the search for deadlocks; see deadlock.cpp.
#pragma once

#include <cstdint>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class worker;
class deadlock_watch;

/// The knowledge of a worker about its own fibers: when it looks at their waits, and what it reports while it sleeps.
class deadlock_probe {
 public:
  // -- by the worker's scheduler
  /// Whether none of its fibers has run since it has looked.
  [[nodiscard]] bool quiescent() const noexcept { return quiescent_; }
  /// Called when it is about to run a fiber for the first time since then.
  void end_quiescence(const deadlock_watch& watch, platform::time_point now) noexcept;
  /// Called when it is time, or another worker has begun a round. The worker began its last tick at `last_tick`.
  void look(worker& w, platform::time_point now, platform::time_point last_tick, platform::random& random) noexcept;
  /// Called after each tick; `round` is the present one. If it began before the end of the tick, the others may have
  /// looked before its fibers began to wait.
  PIRN_ALWAYS_INLINE void tick_ended(std::uint32_t round) noexcept {
    if (round != round_) [[unlikely]] {
      late_ = true;
    }
  }
  /// Called when the worker is about to sleep; returns when to look again.
  [[nodiscard]] platform::time_point report_idle(const worker& w) noexcept;
  /// Called when it is awake.
  void withdraw_report() noexcept { report_.store(idle_report::absent, platform::memory_order_release); }
  /// Called when the OS thread begins the wait in which the worker runs.
  void thread_waits() noexcept { thread_waits_.store(true, platform::memory_order_relaxed); }

  // -- any thread
  /// Called when that thread was woken.
  void thread_was_woken() noexcept { thread_waits_.store(false, platform::memory_order_release); }

 private:
  friend class deadlock_watch;
  enum class idle_report : std::uint8_t { absent, quiescent, no_external_waker };

  // -- by the worker alone
  platform::time_point next_ = platform::never;  ///< when to look again
  std::uint32_t round_ = 0;                      ///< the last round in which it took part
  bool quiescent_ = true;
  bool late_ = false;               ///< a fiber of it has run since the beginning of the round in which it looked last
  bool no_external_waker_ = false;  ///< all its fibers wait, for what fibers and plain threads alone can do
  unsigned probe_attempts_ = 0;     ///< how often it will still probe whether the others stand still too
  bool confirmed_ = false;          ///< the last probe found that they do
  platform::duration pause_{};      ///< until it probes again although a foreign thread may do something
  // -- read by others
  /// Its report while it sleeps; `absent` while it is awake, not quiescent, or late.
  platform::atomic<idle_report> report_{idle_report::absent};
  /// For a worker that runs in a wait of its OS thread: false once that thread was woken.
  platform::atomic<bool> thread_waits_{true};
  platform::atomic<std::uint64_t> fingerprint_{0};  ///< of the waits that it has seen
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
