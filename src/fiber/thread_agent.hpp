// The agent of a plain OS thread.
#pragma once

#include "pirn/fiber/detail/wait_record.hpp"
#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A plain OS thread that waits. Never freed, since a late waker may still access it; reused by later threads.
class thread_agent : public agent {
 public:
  /// Returns that of the calling thread, made when it first waits.
  static thread_agent& here() noexcept;
  /// As `here`, but null if the thread has never waited.
  static thread_agent* here_if_known() noexcept;

  /// Begins the sleep of the calling thread, before its wait is published; `end_sleep` waits for a call of `wake` since
  /// then.
  void begin_sleep(platform::time_point deadline) noexcept;
  /// Sleeps until it is woken. A thread with a worker runs the fibers of that meanwhile, whose timers watch the
  /// deadline; one without watches it here.
  void end_sleep(const wait_record& wait) noexcept;
  /// Wakes the thread. Any thread, once for each sleep. Afterwards the thread may have ended.
  void wake() noexcept;

  /// Returns the timers that watch its deadlines, or null.
  [[nodiscard]] timer_queue* timers() const noexcept {
    return hosted_worker_ != nullptr ? &hosted_worker_->timers : nullptr;
  }

  inherited_context inherited;

 private:
  friend struct agent_of_thread;
  thread_agent() noexcept : agent(agent_kind::thread) {}
  static thread_agent* take() noexcept;
  void give_back() noexcept;

  platform::atomic<std::uint32_t> wakeups_{0};
  std::uint32_t before_ = 0;  ///< `wakeups_` at the beginning of its sleep
  bool counted_ = false;  ///< is among `waiting_threads`; set by the thread before it waits, then cleared by its waker
  worker* hosted_worker_ = nullptr;  ///< the worker that runs on it while it waits
  thread_agent* next_free_ = nullptr;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
