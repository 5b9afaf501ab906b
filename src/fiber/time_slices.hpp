// Time slices: tells each worker that its fibers have run for long enough.
#pragma once

#include <cstdint>
#include <vector>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A thread that checks twice in each time slice whether the workers have run a tick since, and sets
/// `worker::slice_over` of those that have not. It sleeps while all workers do, so an idle runtime costs nothing.
class time_slices {
 public:
  time_slices(runtime_state& owner, platform::duration slice) noexcept;
  time_slices(const time_slices&) = delete;
  time_slices& operator=(const time_slices&) = delete;

  [[nodiscard]] std::error_code start() noexcept;
  /// Ends the thread. Only if it was started.
  void stop() noexcept;
  /// Called by a worker that has slept, after it has withdrawn the mark of its inbox that says so.
  void worker_awakes() noexcept {
    platform::light_fence();  // pairs with the heavy fence of `sleep_with_workers`: mark withdrawn, then state read
    if (state_.load(platform::memory_order_relaxed) == asleep) [[unlikely]] {
      awake_thread();
    }
  }

 private:
  struct record {
    std::uint64_t progress = 0;  ///< what the worker has counted
    platform::time_point since = {};
  };
  void run() noexcept;
  /// Marks the workers whose slice is over. False if all sleep.
  bool check_workers() noexcept;
  [[nodiscard]] bool all_sleep() const noexcept;
  [[nodiscard]] bool sleeps(const worker& w) const noexcept;
  void sleep_with_workers() noexcept;
  void awake_thread() noexcept;

  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t asleep = 1;
  static constexpr std::uint32_t stopping = 2;

  runtime_state& owner_;
  const platform::duration slice_;
  std::vector<record> records_;
  platform::signal_atomic<std::uint32_t> state_{awake};
  platform::thread thread_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
