// The part of a worker that waits for work.
#pragma once

#include "pirn/fiber/detail/adaptive_spinner.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class worker;

/// Waits, awake or asleep in the engine, while its worker has no work. For the worker's thread.
class parker {
 public:
  template <class... Spin>
  explicit parker(worker& of, const Spin&... spin) : w_(of), spinner_(spin...) {}
  parker(const parker&) = delete;
  parker& operator=(const parker&) = delete;

  /// Waits awake for what others may hand over, if that is worthwhile, until the word is no longer `before`, or for
  /// some microseconds. False if it is time to sleep.
  bool spin(platform::time_point now, const platform::atomic<std::uint32_t>* word, std::uint32_t before) noexcept;
  /// Sleeps until there may be something to do.
  void park() noexcept;
  /// Called when the worker runs fibers again.
  void end_wait() noexcept {
    spinner_.end_wait();
    next_yield_ = {};
  }

  /// Polls the engine of a worker that has fibers to run, unless it is too early. So one poll finds more events. Fibers
  /// that they make ready would have run after those that are ready now in any case, except those of high priority or
  /// of other workers.
  void poll_beside_fibers(platform::time_point now) noexcept;
  /// Called when the worker begins, at `now`.
  void begin(platform::time_point now) noexcept { last_poll_ = now; }
  /// Makes the next call of `poll_beside_fibers` poll.
  void poll_at_next_tick() noexcept { last_poll_ = {}; }

 private:
  /// Checks, while it spins, whether the kernel has run another thread since `before`. Returns the time.
  platform::time_point look_for_preemption(platform::time_point before) noexcept;
  void poll(platform::time_point deadline) noexcept;
  [[nodiscard]] std::uint64_t switches() const noexcept;

  worker& w_;
  adaptive_spinner spinner_;
  long times_preempted_ = 0;
  platform::time_point last_poll_;
  /// When a worker that waits awake, or that tries to take what it has seen meanwhile, lets another thread have its
  /// CPU.
  platform::time_point next_yield_;
  std::size_t events_ = 0;                  ///< of the last poll
  std::uint64_t switches_before_poll_ = 0;  ///< of the worker
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
