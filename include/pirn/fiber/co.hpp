// Operations that a task awaits: the end of a fiber, a point in time, a yield. Channels and select are in
// pirn/sync/co.hpp.
#pragma once

#include "pirn/fiber/fiber.hpp"
#include "pirn/fiber/task.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

class sleep_awaiter : public own_awaiter {
 public:
  explicit sleep_awaiter(platform::time_point when) noexcept : when_(when) {}
  static constexpr bool await_ready() noexcept { return false; }
  template <task_like Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
    return wait_.begin(h.promise().chain(), h, {.deadline = when_, .what = "time to pass"}, none_);
  }
  std::expected<void, wait_error> await_resume() noexcept {
    const wake_reason why = wait_.end(none_);
    return why == wake_reason::timed_out ? std::expected<void, wait_error>{} : std::unexpected(error_of(why));
  }

 private:
  platform::time_point when_;
  [[no_unique_address]] no_entry none_;
  coroutine_wait wait_;
};

struct yield_awaiter : own_awaiter {
  static constexpr bool await_ready() noexcept { return false; }
  template <task_like Promise>
  PIRN_ALWAYS_INLINE static std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
    coroutine_agent& chain = h.promise().chain();
    return coroutine_runner::here().yield(chain, h);
  }
  static constexpr void await_resume() noexcept {}
};

}  // namespace detail

/// Operations for `co_await` in a task. Each suspends only the task, and ends early when the fiber that awaits the
/// chain of tasks is asked to stop or its deadline passes. Exceptions come only from moved values and joined fibers.
namespace co {

/// Suspends the task until `when`, or longer if the worker is busy.
[[nodiscard]] inline detail::sleep_awaiter sleep_until(time_limit when) noexcept { return detail::sleep_awaiter(when); }
/// As `sleep_until`, for a time.
[[nodiscard]] inline detail::sleep_awaiter sleep_for(time_span how_long) noexcept {
  return detail::sleep_awaiter(time_limit(how_long));
}

/// Lets the other ready tasks of the worker run first, and from time to time its fibers.
[[nodiscard]] inline detail::yield_awaiter yield() noexcept { return {}; }

/// Joins `f`, as `fiber::join` with a deadline. `co_await f` alone is as `f.join()`, which no stop ends.
[[nodiscard]] inline detail::fiber_awaiter join(fiber& f, time_limit deadline = platform::never) noexcept {
  return {f, deadline, true};
}

}  // namespace co
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
