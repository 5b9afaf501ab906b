// Decides whether an idle worker waits awake, and for how long.
#pragma once

#include <algorithm>

#include "pirn/detail/time.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Sleeping and being woken takes some microseconds on an idle CPU, tens or hundreds on a virtual one. A worker that
/// waits awake for about as long before it sleeps never loses more than twice the cost of the better choice (Karlin,
/// Li, Manasse and Owicki 1991). It does so only where that has been of use of late. One worker's; not shared.
class adaptive_spinner {
 public:
  /// The maximum number of sleeps between two tries.
  static constexpr unsigned max_sleeps_between = 255;
  /// After another thread has had the CPU again, the worker does not wait awake for up to this many times as long. It
  /// is also how many times as long the CPU must have been the worker's own for the next one not to be "again".
  static constexpr int max_rests = 16;
  /// The worker waits awake for twice the measured time of a wake-up, but at least for this long.
  static constexpr platform::duration min_limit = std::chrono::microseconds(100);

  /// Never waits awake for longer than `max_limit` in a row.
  explicit adaptive_spinner(platform::duration max_limit) noexcept : max_limit_(max_limit) {}

  /// Called when there is nothing to do: whether to continue waiting. If false, the worker sleeps next.
  [[nodiscard]] bool wait(platform::time_point now) noexcept {
    if (!waiting()) {
      if (max_limit_ <= platform::duration::zero() || now < contended_until_) {
        return false;
      }
      if (sleeps_left_ != 0) {
        --sleeps_left_;
        return false;
      }
      until_ = platform::later(now, limit());
      return true;
    }
    if (now < until_) {
      return true;
    }
    end_wait();
    sleeps_between_ = std::min(2 * sleeps_between_ + 1, max_sleeps_between);
    sleeps_left_ = sleeps_between_;
    return false;
  }
  /// Ends the wait: the worker has something to do.
  void end_wait() noexcept { until_ = {}; }
  /// As `end_wait`, for something that the worker was waiting for.
  void hit() noexcept {
    end_wait();
    sleeps_between_ = 0;
  }
  /// Another thread has had the CPU from `before` until `now`. If that happens again and again, a worker that waits
  /// awake uses up the time that the kernel gives it, and is late when it is woken: so it rests, for twice as long each
  /// time. A moment of the kernel's own work does not come again soon, and a rest after it would make each wake-up slow
  /// meanwhile.
  void record_preemption(platform::time_point before, platform::time_point now) noexcept {
    end_wait();
    const platform::duration took = now - before;
    const bool again = before - contended_until_ < max_rests * took;
    rests_ = again ? std::clamp(2 * rests_, 1, max_rests) : 0;
    contended_until_ = now + rests_ * took;
  }
  /// The worker has slept from `began` until `now`, and was woken by something that arrived at `arrived`: `began` or
  /// earlier if the time is unknown.
  void record_sleep(platform::time_point began, platform::time_point arrived, platform::time_point now) noexcept {
    if (arrived <= began) {
      arrived = now;
    } else {
      wake_takes_ += (now - arrived - wake_takes_) / 4;
    }
    if (arrived - began < limit()) {
      sleeps_left_ = sleeps_between_ = 0;
    }
  }

  [[nodiscard]] bool waiting() const noexcept { return until_ != platform::time_point{}; }
  [[nodiscard]] platform::duration limit() const noexcept {
    return std::min(std::max(2 * wake_takes_, min_limit), max_limit_);
  }

 private:
  platform::duration max_limit_;
  platform::duration wake_takes_{};  ///< about, from an arrival until the worker runs again
  platform::time_point until_{};
  unsigned sleeps_left_ = 1;
  unsigned sleeps_between_ = 0;
  int rests_ = 0;
  platform::time_point contended_until_{};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
