// C++20 coroutines beside fibers, on the same workers.
//
// A task runs on the worker of the fiber that awaits it. While it waits by co_await it needs no stack, only its frame.
// Between two waits it runs on the stack of a fiber of that worker, so it may call anything.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <expected>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/fiber/detail/coroutine_wait.hpp"
#include "pirn/fiber/scope.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

template <class T>
class task;
template <class T>
class spawned;
namespace co {
/// \cond declared again in spawned.hpp, with what they do
template <class T>
spawned<T> spawn(task<T> what);
void spawn(scope& owner, task<void> what);
/// \endcond
}  // namespace co

namespace detail {

/// A chain of tasks that a fiber awaits; lies on its stack.
struct task_root : coroutine_agent {
  explicit task_root(worker& home, void (*at_end)(task_root&) noexcept = nullptr) noexcept
      : coroutine_agent(home), end_otherwise(at_end) {}
  completion ended;
  void (*const end_otherwise)(task_root&) noexcept;  ///< called instead of `ended.set()`, unless null
};
/// Returns the calling fiber's worker, with a `coroutine_runner`. Throws std::system_error (operation_not_permitted on
/// a plain thread; memory).
worker& worker_for_tasks();
/// Runs the chain, which begins in `from`, until it has ended. A stop or passed deadline of the caller is the chain's.
void run_tasks(task_root& root, std::coroutine_handle<> from, platform::time_point deadline) noexcept;

class task_promise_base {
 public:
  // Inlined, as `frame_alignment` requires. That needs no -fcoro-aligned-allocation, so the warning does not matter.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wcoro-non-aligned-allocation-function"
#endif
  PIRN_ALWAYS_INLINE static void* operator new(std::size_t size) {
    return frame_cache::allocate(size, frame_alignment(size));
  }
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
  PIRN_ALWAYS_INLINE static void operator delete(void* frame, std::size_t size) noexcept {
    frame_cache::deallocate(frame, size, frame_alignment(size));
  }

  struct final_awaiter {
    static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    static std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      task_promise_base& self = ended.promise();
      if (self.awaited_by_) {
        return coroutine_runner::pass(*self.chain_, self.awaited_by_);
      }
      auto& root = static_cast<task_root&>(*self.chain_);
      coroutine_runner& runner = coroutine_runner::here();
      const unsigned passed = root.passed;
      root.leave();
      // Then the chain and its frames may be gone.
      root.end_otherwise != nullptr ? root.end_otherwise(root) : static_cast<void>(root.ended.set());
      return runner.next(passed);
    }
    static constexpr void await_resume() noexcept {}
  };
  [[nodiscard]] static std::suspend_always initial_suspend() noexcept { return {}; }
  [[nodiscard]] static final_awaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception_ = exception_of("a task"); }
  template <class Awaitable>
  decltype(auto) await_transform(Awaitable&& what);

  [[nodiscard]] coroutine_agent& chain() const noexcept { return *chain_; }
  /// Returns the exception that has ended it, and keeps it no longer.
  [[nodiscard]] std::exception_ptr take_exception() noexcept { return std::move(exception_); }
  /// Makes this coroutine a link of `chain`; `awaited_by` continues once it has ended, and is null for the first link.
  void join_chain(coroutine_agent& chain, std::coroutine_handle<> awaited_by) noexcept {
    chain_ = &chain;
    awaited_by_ = awaited_by;
  }

 protected:
  void rethrow() {
    if (exception_) {
      std::rethrow_exception(std::move(exception_));
    }
  }

 private:
  coroutine_agent* chain_ = nullptr;
  std::coroutine_handle<> awaited_by_;
  std::exception_ptr exception_;
};

template <class T>
class task_promise : public task_promise_base {
 public:
  task<T> get_return_object() noexcept;
  template <class U = T>
    requires std::convertible_to<U&&, T>
  void return_value(U&& value) {
    result_.fill([&value]() -> T { return std::forward<U>(value); });
  }
  T take() {
    rethrow();
    return result_.take();
  }

 private:
  result_slot<T> result_;
};
template <>
class task_promise<void> : public task_promise_base {
 public:
  task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() { rethrow(); }
};

template <class Promise>
concept task_like = std::derived_from<Promise, task_promise_base>;

}  // namespace detail

/// A coroutine that begins when it is awaited: by another task (`co_await`), by a fiber (`await`). Move-only;
/// destroying it destroys a coroutine that has not begun or has ended. `co_await` and `await` return its result or
/// rethrow its exception. Its frame comes from a cache of its worker. Not itself thread-safe.
template <class T = void>
class [[nodiscard]] task {
 public:
  using promise_type = detail::task_promise<T>;

  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~task() {
    if (frame_) {
      frame_.destroy();
    }
  }

  /// Begins this task, as the next link of the awaiting task's chain.
  auto operator co_await() && noexcept { return awaiter{frame_}; }

 private:
  friend promise_type;
  template <class U>
  friend U await(task<U> what, time_limit deadline);
  friend spawned<T> co::spawn<T>(task what);
  friend void co::spawn(scope& owner, task<void> what);
  struct awaiter {
    std::coroutine_handle<promise_type> frame;
    static constexpr bool await_ready() noexcept { return false; }
    template <detail::task_like Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> by) noexcept {
      frame.promise().join_chain(by.promise().chain(), by);
      return detail::coroutine_runner::pass(by.promise().chain(), frame);
    }
    T await_resume() { return frame.promise().take(); }
  };
  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

/// Runs a task and suspends the calling fiber until it has ended; returns its result or rethrows its exception. A stop
/// of the fiber, and the deadline, end the task's waits by co_await with that error, as they would end the fiber's own
/// waits; `await` still waits for the task's end. Throws std::system_error (operation_not_permitted on a plain thread,
/// memory), before the task has begun. Cost: as two switches, if the task waits at all.
template <class T>
T await(task<T> what, time_limit deadline = platform::never) {
  detail::task_root root(detail::worker_for_tasks());
  what.frame_.promise().join_chain(root, nullptr);
  detail::run_tasks(root, what.frame_, deadline);
  return what.frame_.promise().take();
}

template <class T>
task<T> detail::task_promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> detail::task_promise<void>::get_return_object() noexcept {
  return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

namespace detail {

template <class A>
decltype(auto) awaiter_of(A&& what) {
  if constexpr (requires { std::forward<A>(what).operator co_await(); }) {
    return std::forward<A>(what).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<A>(what)); }) {
    return operator co_await(std::forward<A>(what));
  } else {
    return std::forward<A>(what);
  }
}
template <class A>
using await_result = decltype(awaiter_of(std::declval<A>()).await_resume());

/// Awaits an awaitable of another library, wherever that resumes it, and completes `there` afterwards.
template <class T>
class bridge {
 public:
  struct promise_type : task_promise<T> {
    bridge get_return_object() noexcept { return bridge(std::coroutine_handle<promise_type>::from_promise(*this)); }
    struct final_awaiter {
      static constexpr bool await_ready() noexcept { return false; }
      static void await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        static_cast<void>(ended.promise().there->set());
      }
      static constexpr void await_resume() noexcept {}
    };
    [[nodiscard]] static final_awaiter final_suspend() noexcept { return {}; }
    template <class A>
    A&& await_transform(A&& what) noexcept {
      return std::forward<A>(what);
    }
    completion* there = nullptr;
  };

  bridge(const bridge&) = delete;
  bridge& operator=(const bridge&) = delete;
  ~bridge() { frame_.destroy(); }
  void begin(completion& there) {
    frame_.promise().there = &there;
    frame_.resume();
  }
  T take() { return frame_.promise().take(); }

 private:
  explicit bridge(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

template <class A>
bridge<await_result<A>> build_bridge(A&& what) {
  co_return co_await std::forward<A>(what);
}

/// Awaits an awaitable that is not pirn's: the task still resumes on its own worker.
template <class A>
class foreign_awaiter {
 public:
  explicit foreign_awaiter(A&& what) : bridge_(build_bridge<A>(std::forward<A>(what))) {}
  static constexpr bool await_ready() noexcept { return false; }
  template <task_like Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) {
    bridge_.begin(there_);
    return wait_.begin(there_, h.promise().chain(), h, "an awaitable");
  }
  await_result<A> await_resume() { return bridge_.take(); }

 private:
  completion there_;
  completion_wait wait_;
  bridge<await_result<A>> bridge_;
};

template <class A>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;
template <class A>
inline constexpr bool is_spawned = false;
template <class T>
inline constexpr bool is_spawned<spawned<T>> = true;

/// Refers to an awaiter that gcc-12 would copy.
template <class Awaiter>
class awaiter_reference {
 public:
  explicit awaiter_reference(Awaiter& what) noexcept : what_(what) {}
  bool await_ready() { return what_.await_ready(); }
  template <task_like Promise>
  PIRN_ALWAYS_INLINE auto await_suspend(std::coroutine_handle<Promise> h) {
    return what_.await_suspend(h);
  }
  decltype(auto) await_resume() { return what_.await_resume(); }

 private:
  Awaiter& what_;
};

template <class Awaitable>
decltype(auto) task_promise_base::await_transform(Awaitable&& what) {
  using plain = std::remove_cvref_t<Awaitable>;
  if constexpr (is_task<plain>) {
    return std::forward<Awaitable>(what).operator co_await();
  } else if constexpr (std::derived_from<plain, own_awaiter>) {
    return awaiter_reference<plain>(what);
  } else if constexpr (std::same_as<plain, fiber>) {
    return plain_fiber_awaiter(what);
  } else if constexpr (is_spawned<plain>) {
    return what.awaiter_for_task();
  } else {
    return foreign_awaiter<Awaitable>(std::forward<Awaitable>(what));
  }
}

}  // namespace detail

/// Suspends the calling fiber, or blocks a plain thread, until an awaitable of any library is ready; returns and throws
/// as `co_await` of it. Resuming the awaitable, on whatever thread, only wakes the caller. Nothing ends that wait
/// early, since there is no way to stop the awaitable.
template <class A>
  requires(!detail::is_task<std::remove_cvref_t<A>> && !std::derived_from<std::remove_cvref_t<A>, detail::own_awaiter>)
detail::await_result<A> await(A&& what) {
  detail::completion there;
  auto crossing = detail::build_bridge<A>(std::forward<A>(what));
  crossing.begin(there);
  static_cast<void>(there.wait({.stoppable = false, .what = "an awaitable"}));
  return crossing.take();
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
