// Waiting for a number of things to be done.
#pragma once

#include "pirn/fiber/wait_queue.hpp"

namespace pirn::inline PIRN_ABI {

/// Counts what is still to be done, and lets others wait until nothing is. Fibers of any worker and plain threads
/// share it. It may be destroyed as soon as a `wait` has returned without error, and used again as well.
class wait_group {
 public:
  /// Begins with `count` things to be done.
  explicit wait_group(std::uint32_t count = 0) noexcept : left_(count) {}
  wait_group(const wait_group&) = delete;
  wait_group& operator=(const wait_group&) = delete;

  /// Announces more. Before the `done` that could bring the count to zero; a `wait` that comes first may miss it.
  void add(std::uint32_t count = 1) noexcept { left_.fetch_add(count, platform::memory_order_relaxed); }

  /// One thing is done; the last one wakes all that wait. Aborts when more are done than were added. Does not suspend.
  PIRN_ALWAYS_INLINE void done() noexcept {
    std::int64_t left = left_.load(platform::memory_order_relaxed);
    while (left > 1) {
      // Release: who waits sees what was done before.
      if (left_.compare_exchange_weak(left, left - 1, platform::memory_order_release, platform::memory_order_relaxed))
          [[likely]] {
        return;
      }
    }
    last_done();
  }

  /// Suspends until nothing is left to be done, the deadline passes or the caller is asked to stop. Succeeds without
  /// suspending when nothing is.
  [[nodiscard]] std::expected<void, wait_error> wait(platform::time_point deadline = platform::never) noexcept;

  /// What is left at this moment.
  [[nodiscard]] std::uint64_t count() const noexcept {
    return static_cast<std::uint64_t>(left_.load(platform::memory_order_relaxed));
  }

 private:
  void last_done() noexcept;

  platform::atomic<std::int64_t> left_;  ///< goes from 1 to 0 only under the queue's lock
  wait_queue waiters_;
};

}  // namespace pirn::inline PIRN_ABI
