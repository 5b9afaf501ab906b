// One wait of a coroutine, and a completion that others wait for.
#pragma once

#include "pirn/fiber/detail/coroutine_runner.hpp"
#include "pirn/fiber/detail/suspend.hpp"
#include "pirn/fiber/fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The wait of an awaiter; lies in its frame. The two halves of `suspend` for agents without a stack to suspend.
class coroutine_wait {
 public:
  /// Begins the wait of `who`, which is about to be suspended and resumes in `at`. Once the entries are published,
  /// others may claim it: only its home resumes it, and that runs this. Returns the result for `await_suspend`: the
  /// next chain, or `at` if a stop was requested, and then the coroutine continues with the reason.
  template <class Entries>
  std::coroutine_handle<> begin(coroutine_agent& who, std::coroutine_handle<> at, const wait_options& options,
                                Entries& entries) noexcept {
    who.leave();
    // First, since a signal that comes in between may print a dump.
    who.continuation = at;
    who.waits_for = options.what;
    who.waits_at = options.object;
    const wait_kind kind = kind_of(options);
    std::uint64_t epoch = 0;
    if (!begin_wait<true>(who, kind, epoch, entries)) [[unlikely]] {
      reason_ = who.stop_reason();
      who.enter();
      return coroutine_runner::pass(who, at);
    }
    who_ = &who;
    coroutine_runner& runner = coroutine_runner::here();
    const unsigned passed = who.passed;
    if (options.deadline != platform::never) {
      publish_action publish(entries.publisher());
      suspend_slow({who, options, kind, epoch}, publish, &limit_);
    } else {
      if (kind == wait_kind::stoppable && who.open_to_stop(epoch)) [[unlikely]] {
        runner.push(who);
      }
      entries.publisher()();
    }
    return runner.next(passed);
  }
  /// Returns why it has ended. Called once, when the coroutine has been resumed or was not suspended.
  template <class Entries>
  wake_reason end(Entries& entries) noexcept {
    if (who_ != nullptr) {
      who_->home().timers.cancel(limit_);
      reason_ = entries.remove_after_wait(*who_);
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
  /// Marks it as done. True if it was abandoned: then the caller destroys it. Otherwise nothing of it is touched
  /// afterwards, so that the waiter may destroy it.
  bool set() noexcept {
    queue_.lock();
    done_ = true;
    const bool abandoned = abandoned_;
    queue_.notify_all_and_unlock();
    return abandoned;
  }
  [[nodiscard]] wake_reason wait(const wait_options& options) noexcept {
    queue_.lock();
    if (done_) {
      queue_.unlock();
      return wake_reason::notified;
    }
    return queue_.wait(options);
  }
  /// Says that no waiter will come. True if it is done: then the caller destroys it, and otherwise the caller of `set`.
  [[nodiscard]] bool abandon() noexcept {
    queue_.lock();
    abandoned_ = true;
    const bool done = done_;
    queue_.unlock();
    return done;
  }

 private:
  friend class completion_wait;
  wait_queue queue_;
  bool done_ = false;
  bool abandoned_ = false;
};

/// The wait of a coroutine for a completion, which no stop ends; lies in its frame.
class completion_wait {
 public:
  /// Begins the wait. Returns the result for the `await_suspend` of the coroutine.
  std::coroutine_handle<> begin(completion& what, coroutine_agent& who, std::coroutine_handle<> at,
                                const char* name) noexcept {
    what.queue_.lock();
    if (what.done_) {
      what.queue_.unlock();
      return coroutine_runner::pass(who, at);
    }
    list_entry<platform::spinlock, true> entry{what.queue_.list(), what.queue_.own_lock(), node_};
    return wait_.begin(who, at, {.stoppable = false, .what = name}, entry);
  }

 private:
  coroutine_wait wait_;
  waiter_place node_;
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
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
    me_.target = fiber_.control_;
    return wait_.begin(h.promise().chain(), h, options_, me_);
  }
  std::expected<void, wait_error> await_resume() {
    wake_reason reason = wake_reason::notified;
    if (outcome_ == join_possible) {
      reason = wait_.end(me_);
      outcome_ = me_.outcome;
    }
    return fiber_.end_join(outcome_, reason);
  }

 private:
  fiber& fiber_;
  const wait_options options_;
  coroutine_wait wait_;
  join_entry me_{nullptr};
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
