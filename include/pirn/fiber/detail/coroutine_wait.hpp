// One wait of a coroutine, and a completion that others wait for.
#pragma once

#include "pirn/fiber/detail/coroutine_runner.hpp"
#include "pirn/fiber/fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The wait of an awaiter; lies in its frame. The counterpart of `block` for agents without a stack to suspend.
class coroutine_wait {
 public:
  /// Begins the wait of `who`, which is about to be suspended and resumes in `at`. `publish(epoch)` makes it known to
  /// others, which may claim it from then on: only its home resumes it, and that runs this. False if a stop was
  /// requested: then nothing is published and the coroutine continues, with the reason.
  template <class Publish>
  bool begin(coroutine_agent& who, std::coroutine_handle<> at, const wait_options& options,
             Publish&& publish) noexcept {
    who.leave();
    // First, since a signal that comes in between may print a dump.
    who.continuation = at;
    who.waits_for = options.what;
    who.waits_at = options.object;
    std::uint64_t epoch = 0;
    if (!who.begin(kind_of(options), epoch)) {
      reason_ = who.stop_reason();
      who.enter();
      return false;
    }
    who_ = &who;
    who.home().timers.arm(limit_, options.deadline, waker(who, epoch));
    if (options.stoppable && who.open_to_stop(epoch)) {
      who.home().coroutines->schedule(who);
    }
    publish(epoch);
    return true;
  }
  [[nodiscard]] bool begun() const noexcept { return who_ != nullptr; }
  /// Returns why it has ended. Called once, when the coroutine has been resumed or was not suspended.
  wake_reason end() noexcept {
    if (who_ != nullptr) {
      who_->home().timers.cancel(limit_);
      reason_ = who_->reason();
    }
    return reason_;
  }

 private:
  coroutine_agent* who_ = nullptr;
  timer limit_;
  wake_reason reason_ = wake_reason::notified;
};

/// An event that happens once, and its waiter: a fiber, a thread or a coroutine.
class completion {
 public:
  /// Marks it as done, and touches nothing of it afterwards, so that the waiter may destroy it.
  void set() noexcept {
    queue_.lock();
    done_ = true;
    queue_.notify_all_and_unlock();
  }
  [[nodiscard]] wake_reason wait(const wait_options& options) noexcept {
    queue_.lock();
    if (done_) {
      queue_.unlock();
      return wake_reason::notified;
    }
    return queue_.wait(options);
  }
  /// Begins the wait of a coroutine, which no stop ends. True if the coroutine must be suspended.
  bool begin_wait(coroutine_agent& who, std::coroutine_handle<> at) noexcept {
    queue_.lock();
    if (done_) {
      queue_.unlock();
      return false;
    }
    return wait_.begin(who, at, {.stoppable = false, .what = "an awaitable"}, [&](std::uint64_t epoch) {
      node_.wake = waker(who, epoch);
      queue_.append(node_);
      queue_.unlock();
    });
  }

 private:
  wait_queue queue_;
  bool done_ = false;
  coroutine_wait wait_;
  waiter node_;
};

/// Marks the awaiters that only tasks can await.
struct own_awaiter {};

/// Joins a fiber.
class fiber_awaiter : public own_awaiter {
 public:
  fiber_awaiter(fiber& what, platform::time_point deadline, bool stoppable) noexcept
      : fiber_(what), options_{.deadline = deadline, .stoppable = stoppable, .what = "end of fiber"} {}

  bool await_ready() {
    if (fiber_.control_ == nullptr) {
      throw_not_joinable();
    }
    outcome_ = end_if_known(current_worker(), fiber_.control_);
    return outcome_ != join_possible;
  }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> h) noexcept {
    return wait_.begin(h.promise().chain(), h, options_, [&](std::uint64_t epoch) {
      me_ = {&h.promise().chain(), epoch};
      publish_joiner(fiber_.control_, me_);
    });
  }
  std::expected<void, wait_error> await_resume() {
    wake_reason reason = wake_reason::notified;
    if (outcome_ == join_possible) {
      reason = wait_.end();
      if (wait_.begun()) {
        outcome_ = end_after_wait(fiber_.control_, me_, reason);
      }
    }
    return fiber_.end_join(outcome_, reason);
  }

 private:
  fiber& fiber_;
  const wait_options options_;
  coroutine_wait wait_;
  joiner me_{};
  std::uintptr_t outcome_ = join_possible;
};
/// As `join()`: only the end of the fiber ends the wait.
struct plain_fiber_awaiter : fiber_awaiter {
  explicit plain_fiber_awaiter(fiber& what) noexcept : fiber_awaiter(what, platform::never, false) {}
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): callers know which of the two they have
  void await_resume() { static_cast<void>(fiber_awaiter::await_resume()); }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
