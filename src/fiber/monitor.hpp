// The search for fibers that keep their workers for too long.
#pragma once

#include <cstdint>
#include <vector>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The state in which an interrupt found a worker. An equal state means that it has not switched in between, unless it
/// has run a tick.
struct turn {
  std::uint64_t fiber = 0;  ///< its number; 0 for none
  unsigned budget_left = 0;
  friend bool operator==(const turn&, const turn&) = default;
};
/// Interrupts the thread of `w` and returns its state. If that is `last`, which began `lasts` ago, the thread reports
/// it on standard error, with a backtrace. Returns an empty state if the thread does not answer.
turn find_turn(const worker& w, const turn& last, platform::duration lasts) noexcept;

/// A thread that checks twice in each `stall_threshold` whether the workers have switched. It interrupts only those
/// that have not.
class turn_monitor {
 public:
  turn_monitor(runtime_state& owner, platform::duration stall_threshold) noexcept;
  turn_monitor(const turn_monitor&) = delete;
  turn_monitor& operator=(const turn_monitor&) = delete;

  [[nodiscard]] std::error_code start() noexcept;
  /// Ends the thread. Only if it was started.
  void stop() noexcept;

 private:
  struct record {
    std::uint64_t progress = 0;  ///< what the worker has counted
    turn last = {};
    platform::time_point since = {};
    bool reported = false;
  };
  void run() noexcept;
  void look_at(const worker& w, record& before) noexcept;

  runtime_state& owner_;
  const platform::duration stall_threshold_;
  std::vector<record> records_;
  platform::signal_atomic<std::uint32_t> stopping_{0};
  platform::thread thread_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
