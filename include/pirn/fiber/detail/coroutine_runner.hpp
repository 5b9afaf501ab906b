// Resumes the stackless coroutines of a worker: C++20 tasks.
#pragma once

#include <coroutine>
#include <utility>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Waits on behalf of a chain of coroutines, each of which awaits the next: one wait at a time, as with a fiber. Only
/// its home resumes it.
class coroutine_agent : public agent {
 public:
  explicit coroutine_agent(worker& home) noexcept : agent(agent_kind::coroutine), home_(home) {}
  [[nodiscard]] worker& home() const noexcept { return home_; }

  std::coroutine_handle<> continuation;  ///< to resume, once it is runnable
  unsigned passed = 0;                   ///< switches within the chain since a runner last resumed it
  // Of its last wait, for dumps.
  const char* waits_for = "";
  const void* waits_at = nullptr;

  /// The values that are bound for the chain move with it. `enter` exchanges the values of the resuming fiber for them.
  /// `leave`, called in the chain, exchanges them back before it is suspended or when it has ended; it ends the program
  /// with a message if the chain has a scope open, which belongs to the fiber.
  void enter() noexcept;
  void leave() noexcept;
  /// Called by the awaiting fiber, before and after: it begins with the values of that fiber.
  void inherit_values() noexcept;
  void release_values() noexcept;

 private:
  friend class coroutine_runner;
  context_node* values_ = nullptr;    ///< of the chain while it is suspended, else of the fiber
  const scope* innermost_ = nullptr;  ///< of the fiber that resumed it
  worker& home_;
  coroutine_agent* next_ = nullptr;
};

/// The ready coroutines of one worker, first in first out, and the fibers that resume them. One such fiber is enough as
/// long as coroutines wait by co_await. If a coroutine has called something that suspends, the fiber is held up, and
/// the worker's next tick adds another one for the coroutines that are ready meanwhile.
class coroutine_runner {
 public:
  explicit coroutine_runner(worker& home) noexcept : home_(home) {}
  coroutine_runner(const coroutine_runner&) = delete;
  coroutine_runner& operator=(const coroutine_runner&) = delete;

  /// Returns that of the worker, made when first needed, with at least one fiber. Called by a fiber of the worker;
  /// throws std::system_error (memory).
  static coroutine_runner& of(worker& home);
  /// Resumes the coroutine soon. Any thread.
  void schedule(coroutine_agent& who) noexcept;
  /// Resumes the chain until it waits or has ended. Called by a fiber of the worker.
  void resume(coroutine_agent& chain, std::coroutine_handle<> from) noexcept;
  /// Returns the result for `await_suspend` that lets a chain continue in `to`.
  static std::coroutine_handle<> pass(coroutine_agent& chain, std::coroutine_handle<> to) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
    // gcc makes this a call, which stays on the stack until the chain waits: below -O2, and with some sanitizers.
    if (++chain.passed == max_calls) {
      chain.passed = 0;
      chain.home().coroutines->left_over_ = to;
      return std::noop_coroutine();
    }
#else
    static_cast<void>(chain);
#endif
    return to;
  }
  /// Called by the scheduler at each tick: makes sure that ready coroutines proceed; ends the fibers with the runtime.
  void poll() noexcept;

 private:
  static constexpr unsigned max_calls = 16;

  /// On the stack of a fiber that resumes coroutines.
  struct active_resume {
    const agent* fiber;
    active_resume* next;
  };

  [[nodiscard]] bool add_fiber() noexcept;
  void resume_all() noexcept;
  [[nodiscard]] bool all_held_up() const noexcept;

  worker& home_;
  wait_queue idle_;  ///< fibers without work; its lock guards the members below
  coroutine_agent* first_ = nullptr;
  coroutine_agent* last_ = nullptr;
  unsigned fibers_ = 0;
  active_resume* active_ = nullptr;  ///< the fibers that are inside a coroutine
  /// From `pass` to the `resume` in which the call of a coroutine then returns, with nothing in between.
  std::coroutine_handle<> left_over_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
