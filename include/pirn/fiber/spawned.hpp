// Tasks that run without a fiber that awaits them: begun by co::spawn, and joined by a fiber, a thread or a task, or
// owned by a scope.
#pragma once

#include <expected>
#include <memory>
#include <type_traits>
#include <utility>

#include "pirn/fiber/task.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

template <class T>
class spawned;

namespace detail {

/// A chain of tasks that no fiber awaits; on the heap, with the frame of its first task. Whichever comes second
/// destroys it: the end of the chain, or of the handle's interest in it.
struct spawned_root : task_root {
  /// Throws std::bad_alloc.
  spawned_root(worker& home, std::coroutine_handle<> first, task_promise_base& of, void (*at_end)(task_root&) noexcept)
      : task_root(home, at_end), frame(first), promise(of) {}
  ~spawned_root() { frame.destroy(); }
  static void* operator new(std::size_t size) { return frame_cache::allocate(size, alignof(spawned_root)); }
  static void operator delete(void* root, std::size_t size) noexcept {
    frame_cache::deallocate(root, size, alignof(spawned_root));
  }

  /// Called by a fiber or task of the home, which then has begun it: counts it as alive and makes it ready.
  void begin() noexcept;
  /// Ends its waits by co_await with `why`. Any thread, while it exists.
  void stop(wake_reason why) noexcept;
  /// Waits for its end.
  [[nodiscard]] wake_reason wait(platform::time_point deadline, bool stoppable) noexcept;
  /// Lets it run without a handle.
  void abandon() noexcept;

  static void end(task_root& self) noexcept;

  const std::coroutine_handle<> frame;
  task_promise_base& promise;
};

/// As `spawned_root`, of a scope, which has no handle to it.
struct scoped_root final : spawned_root, stop_link {
  scoped_root(worker& home, std::coroutine_handle<> first, task_promise_base& of, scope& by)
      : spawned_root(home, first, of, &end), owner(by) {}
  void begin_in_scope() noexcept;
  static void end(task_root& self) noexcept;

  scope& owner;
};

/// Begins a task of a scope. Throws as `worker_for_tasks`, and std::bad_alloc; then it has not begun.
void spawn_in(scope& owner, std::coroutine_handle<> frame, task_promise_base& promise);

/// The awaiter of a task's join.
template <class T>
class spawned_awaiter : public own_awaiter {
 public:
  explicit spawned_awaiter(spawned<T>& what) noexcept : spawned_(what) {}
  bool await_ready() {
    if (!spawned_.joinable()) {
      throw_not_joinable();
    }
    return false;
  }
  template <task_like Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
    return wait_.begin(spawned_.root_->ended, h.promise().chain(), h, "end of task");
  }
  T await_resume() { return spawned_.take(); }

 private:
  spawned<T>& spawned_;
  completion_wait wait_;
};

}  // namespace detail

namespace co {
template <class T>
spawned<T> spawn(task<T> what);
}  // namespace co

/// A handle of a task that no fiber awaits, as `fiber` is one of a fiber; made by `co::spawn`. Move-only. One fiber,
/// thread or task uses it at a time; `co_await` of it in a task is as `join()`.
template <class T = void>
class [[nodiscard]] spawned {
 public:
  spawned() noexcept = default;
  spawned(spawned&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  spawned& operator=(spawned&& other) noexcept {
    if (this != &other) {
      const spawned before(std::move(*this));  // ended first, as that of a fiber
      root_ = std::exchange(other.root_, nullptr);
    }
    return *this;
  }
  /// Requests a stop of a task that has not been joined, and waits for its end: a suspension point. Its exception then
  /// goes to the handler of unhandled exceptions.
  ~spawned() {
    if (root_ != nullptr) {
      request_stop();
      static_cast<void>(root_->wait(platform::never, false));
      root_->abandon();
    }
  }

  /// Whether there is a task to join.
  [[nodiscard]] bool joinable() const noexcept { return root_ != nullptr; }
  /// Suspends the calling fiber, or blocks a plain thread, until the task has ended; then returns its result or
  /// rethrows its exception. A stop of the caller does not end this wait. Throws std::system_error (no_such_process)
  /// for an empty handle.
  T join() {
    check();
    static_cast<void>(root_->wait(platform::never, false));
    return take();
  }
  /// As `join`, but ends when the deadline passes or the caller is asked to stop: then the handle stays joinable.
  [[nodiscard]] std::expected<T, wait_error> join(time_limit deadline)
    requires(!std::is_reference_v<T>)
  {
    check();
    if (const wake_reason why = root_->wait(deadline, true); why != wake_reason::notified) {
      return std::unexpected(detail::error_of(why));
    }
    if constexpr (std::is_void_v<T>) {
      take();
      return {};
    } else {
      return take();
    }
  }
  /// Asks the task to stop: its present and later waits by co_await end with `stopped`, if they would for a stop of an
  /// awaiting fiber. Nothing for an empty handle.
  void request_stop() noexcept {
    if (root_ != nullptr) {
      root_->stop(wake_reason::stopped);
    }
  }
  /// Lets the task run without a handle; its exception then goes to the handler of unhandled exceptions.
  void detach() noexcept {
    if (root_ != nullptr) {
      std::exchange(root_, nullptr)->abandon();
    }
  }

  /// For `co_await`.
  [[nodiscard]] detail::spawned_awaiter<T> awaiter_for_task() noexcept { return detail::spawned_awaiter<T>(*this); }

 private:
  friend spawned co::spawn<T>(task<T> what);
  friend class detail::spawned_awaiter<T>;
  explicit spawned(detail::spawned_root* root) noexcept : root_(root) {}
  void check() const {
    if (root_ == nullptr) {
      detail::throw_not_joinable();
    }
  }
  /// Returns the result of the ended task, which is destroyed.
  T take() {
    const std::unique_ptr<detail::spawned_root> ended(std::exchange(root_, nullptr));
    return static_cast<detail::task_promise<T>&>(ended->promise).take();
  }

  detail::spawned_root* root_ = nullptr;
};

namespace co {

/// Begins a task on the worker of the calling fiber or task, without a fiber that awaits it: until its end it holds its
/// frames and some 130 bytes. It runs after the caller suspends, with the caller's context values. A runtime ends after
/// such tasks, as after fibers. Throws std::system_error (operation_not_permitted on a plain thread, memory) and
/// std::bad_alloc, before the task has begun. Cost: an allocation beside that of the frame.
template <class T>
spawned<T> spawn(task<T> what) {
  detail::worker& home = detail::worker_for_tasks();
  auto* const root = new detail::spawned_root(home, what.frame_, what.frame_.promise(), &detail::spawned_root::end);
  std::exchange(what.frame_, nullptr).promise().join_chain(*root, nullptr);
  root->begin();
  return spawned<T>(root);
}

/// As the other `spawn`, as a child of `owner`: the scope ends after the task, its stop is the task's, and the task's
/// exception stops it. Called by the fibers and tasks that may spawn children of the scope.
inline void spawn(scope& owner, task<> what) {
  detail::spawn_in(owner, what.frame_, what.frame_.promise());
  what.frame_ = nullptr;
}

}  // namespace co
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
