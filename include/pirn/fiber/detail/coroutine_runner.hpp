// What resumes the coroutines without stacks that live on a worker: C++20 tasks.
#pragma once

#include <coroutine>
#include <utility>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// What waits on behalf of a chain of coroutines, each of which awaits the next: one wait at a time, as with a fiber.
/// Only its home resumes it.
class coroutine_agent : public agent {
 public:
  explicit coroutine_agent(worker& home) noexcept : agent(agent_kind::coroutine), home_(home) {}
  [[nodiscard]] worker& home() const noexcept { return home_; }

  std::coroutine_handle<> continuation;  ///< once it is runnable
  unsigned passed = 0;                   ///< from one of the chain to another since one was last resumed by a runner
  // Of its last wait, for dumps.
  const char* waits_for = "";
  const void* waits_at = nullptr;

  /// The values that are bound for the chain go with it: `enter` exchanges those of the fiber that is about to resume
  /// it for them, `leave`, in the chain, exchanges them back before it is suspended or when it has ended. Ends the
  /// program with a message if it has a scope open, which belongs to the fiber.
  void enter() noexcept;
  void leave() noexcept;
  /// By who awaits it, before and after: it begins with the values of that fiber.
  void inherit_values() noexcept;
  void release_values() noexcept;

 private:
  friend class coroutine_runner;
  context_node* values_ = nullptr;    ///< while it is suspended; of the fiber while it is not
  const scope* innermost_ = nullptr;  ///< of the fiber that resumed it
  worker& home_;
  coroutine_agent* next_ = nullptr;
};

/// Of one worker: the coroutines that are ready, first in first out, and the fibers that resume them. One such fiber is
/// enough as long as coroutines wait by co_await; where one has called something that suspends, the fiber is held up,
/// and the worker's next tick adds another for those that are ready meanwhile.
class coroutine_runner {
 public:
  explicit coroutine_runner(worker& home) noexcept : home_(home) {}
  coroutine_runner(const coroutine_runner&) = delete;
  coroutine_runner& operator=(const coroutine_runner&) = delete;

  /// That of the worker, made when first needed, with a fiber at least. By a fiber of the worker; throws
  /// std::system_error (memory).
  static coroutine_runner& of(worker& home);
  /// Resumes the coroutine soon. Any thread.
  void schedule(coroutine_agent& who) noexcept;
  /// Resumes one of the chain until that waits or has ended. By a fiber of the worker.
  void resume(coroutine_agent& chain, std::coroutine_handle<> from) noexcept;
  /// What to return from `await_suspend` for a chain to go on in `to`.
  static std::coroutine_handle<> pass(coroutine_agent& chain, std::coroutine_handle<> to) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
    // gcc makes it a call, which stays on the stack until the chain waits: below -O2, and with some sanitizers.
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
  /// By the scheduler, at each tick: sees to it that what is ready goes on; and ends the fibers once the runtime ends.
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
  wait_queue idle_;  ///< fibers without work; its lock guards what follows
  coroutine_agent* first_ = nullptr;
  coroutine_agent* last_ = nullptr;
  unsigned fibers_ = 0;
  active_resume* active_ = nullptr;  ///< those that are inside of a coroutine
  /// From `pass` to the `resume` whose call of a coroutine returns then, with nothing in between.
  std::coroutine_handle<> left_over_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
