// Fairness: the counts that limit one kind of work on a worker until another kind has had its turn.
#pragma once

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Counts the switches until the scheduler's next tick. For the worker's thread.
class switch_budget {
 public:
  /// Consumes one switch. True if none was left: the scheduler runs next. (This form is one instruction on memory and a
  /// jump on its carry.)
  [[nodiscard]] PIRN_ALWAYS_INLINE bool consume() noexcept { return __builtin_sub_overflow(left_, 1U, &left_); }
  [[nodiscard]] bool exhausted() const noexcept { return static_cast<int>(left_) < 0; }
  [[nodiscard]] PIRN_ALWAYS_INLINE unsigned left() const noexcept { return left_; }
  /// Ends the budget: the next switch is to the scheduler.
  void request_tick() noexcept {
    of_tick_ -= left_;
    left_ = 0;
  }
  /// Limits the budget: the next tick comes after at most `switches` switches.
  void limit(unsigned switches) noexcept {
    if (!exhausted() && left_ > switches) {
      of_tick_ -= left_ - switches;
      left_ = switches;
    }
  }

  // -- the scheduler
  /// Begins a tick.
  void refill(unsigned switches) noexcept { left_ = of_tick_ = switches; }
  /// Returns the budget of this tick, as far as it was not limited.
  [[nodiscard]] unsigned of_tick() const noexcept { return of_tick_; }
  /// Returns how many switches of this tick were consumed.
  [[nodiscard]] unsigned consumed() const noexcept { return of_tick_ - left_; }

 private:
  unsigned left_ = 0;  ///< wraps when exhausted
  unsigned of_tick_ = 0;
};

/// Counts the turns in a row of one kind of fibers, which are limited while others are ready. For the worker's thread.
class turn_budget {
 public:
  explicit constexpr turn_budget(unsigned turns) noexcept : now_(turns), turns_(turns) {}
  /// Whether there may be one more.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool allows() const noexcept { return taken_ < turns_; }
  /// As `allows`, but false from `forbid` to `permit`.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool allows_now() const noexcept { return taken_ < now_; }
  [[nodiscard]] bool allows_any() const noexcept { return turns_ != 0; }
  PIRN_ALWAYS_INLINE void count() noexcept { ++taken_; }
  /// Begins anew, when another kind has had a turn or none of it is ready.
  PIRN_ALWAYS_INLINE void restart() noexcept { taken_ = 0; }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool counted() const noexcept { return taken_ != 0; }
  void forbid() noexcept { now_ = 0; }
  void permit() noexcept { now_ = turns_; }

 private:
  unsigned taken_ = 0;
  unsigned now_;  ///< the limit, or 0 while no turn is permitted
  unsigned turns_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
