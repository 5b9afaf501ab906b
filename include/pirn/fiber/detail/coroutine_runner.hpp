// Resumes the stackless coroutines of a worker: C++20 tasks.
#pragma once

#include <coroutine>
#include <utility>

#include "pirn/fiber/detail/one_worker.hpp"
#include "pirn/fiber/detail/worker.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class coroutine_runner;

/// Waits on behalf of a chain of coroutines, each of which awaits the next: one wait at a time, as with a fiber. Only
/// its home resumes it.
class coroutine_agent : public agent, public ready_chain {
 public:
  explicit coroutine_agent(worker& home) noexcept : agent(agent_kind::coroutine), home_(home) {}
  [[nodiscard]] worker& home() const noexcept { return home_; }

  std::coroutine_handle<> continuation;  ///< to resume, once it is runnable
  unsigned passed = 0;                   ///< switches on the stack that it runs on, since that was last empty of them
  // Of its last wait, for dumps.
  const char* waits_for = "";
  const void* waits_at = nullptr;

  /// The values that are bound for the chain move with it. `enter` exchanges the values of the resuming fiber for them.
  /// `leave`, called in the chain, exchanges them back before it is suspended or when it has ended; it ends the program
  /// with a message if the chain has a scope open, which belongs to the fiber.
  void enter() noexcept;
  PIRN_ALWAYS_INLINE void leave() noexcept;
  /// Called by the awaiting fiber, before and after: it begins with the values of that fiber.
  void inherit_values() noexcept;
  void release_values() noexcept;

 private:
  friend class coroutine_runner;
  /// Whether neither the chain nor the fiber that runs it, which has `here`, has values, and the chain has no scope
  /// open.
  [[nodiscard]] bool has_nothing_bound(const inherited_context& here) const noexcept;
  /// As `enter`, from the chain that has left before in `switching_`: no values of the fiber are there.
  PIRN_ALWAYS_INLINE void enter_next() noexcept {
    innermost_ = nullptr;
    if (values_ != nullptr) [[unlikely]] {
      enter();
    }
  }
  void leave_slow() noexcept;

  context_node* values_ = nullptr;    ///< of the chain while it is suspended, else of the fiber
  const scope* innermost_ = nullptr;  ///< of the fiber that resumed it
  worker& home_;
};

/// The ready coroutines of one worker, first in first out, and the fibers that resume them. One such fiber is enough as
/// long as coroutines wait by co_await. If a coroutine has called something that suspends, the fiber is held up, and
/// the worker's next tick adds another one for the coroutines that are ready meanwhile.
///
/// A chain that suspends switches to the next ready one itself, by symmetric transfer: the stack of the fiber is as
/// empty as after a return to its loop. After `coroutine_budget` chains it returns there, so that the fibers of the
/// worker have a turn. Only the home thread touches the list of ready coroutines; other threads push a chain to the
/// worker's inbox, as they do a fiber, and the scheduler's next tick appends it.
class coroutine_runner {
 public:
  explicit coroutine_runner(worker& home) noexcept : home_(home) {}
  coroutine_runner(const coroutine_runner&) = delete;
  coroutine_runner& operator=(const coroutine_runner&) = delete;

  /// Returns that of the caller's worker, which has one. In a task it is that of the task's home, but the processor has
  /// it at hand before it knows the chain: through the chain, each switch would wait for three more loads in a row.
  [[nodiscard]] PIRN_ALWAYS_INLINE static coroutine_runner& here() noexcept { return *current_worker()->coroutines; }
  /// Returns that of the worker, made when first needed, with at least one fiber. Called by a fiber of the worker;
  /// throws std::system_error (memory).
  static coroutine_runner& of(worker& home);
  /// Resumes the coroutine soon. Any thread.
  void schedule(coroutine_agent& who) noexcept;
  /// As `schedule`, on the home thread.
  PIRN_ALWAYS_INLINE void push(coroutine_agent& who) noexcept {
    ready_.append(who);
    if (idle_fibers_ != 0) [[unlikely]] {
      wake_idle();
    }
  }
  /// Begins the chain, in the calling fiber, which then awaits it, and runs it until it waits or has ended.
  void begin(coroutine_agent& chain, std::coroutine_handle<> from) noexcept;
  /// Returns the result for `await_suspend` that lets a chain continue in `to`.
  PIRN_ALWAYS_INLINE static std::coroutine_handle<> pass(coroutine_agent& chain, std::coroutine_handle<> to) noexcept {
    if constexpr (transfers_are_calls) {
      if (++chain.passed == max_calls) {
        chain.passed = 0;
        here().left_over_ = to;
        return std::noop_coroutine();
      }
    }
    return to;
  }
  /// Returns the result for `await_suspend` of a chain that has left and is suspended: the next ready chain, which is
  /// entered, or the way back to the fiber. `passed` is that of the chain.
  PIRN_ALWAYS_INLINE std::coroutine_handle<> next(unsigned passed) noexcept {
    if (!may_switch(passed)) {
      return std::noop_coroutine();
    }
    coroutine_agent& chain = *ready_.first;
    ready_.drop_first();
    chain.enter_next();
    return count_switch(chain, passed);
  }
  /// Returns the result for `await_suspend` of a chain that gives way to the others and then resumes in `at`.
  PIRN_ALWAYS_INLINE std::coroutine_handle<> yield(coroutine_agent& from, std::coroutine_handle<> at) noexcept {
    from.continuation = at;
    if (!may_switch(from.passed) || !from.has_nothing_bound(*inherited_)) [[unlikely]] {
      return yield_slow(from);
    }
    coroutine_agent& chain = *ready_.first;
    ready_.append(from);  // no fiber is idle, since this one runs and there are others in the list
    ready_.drop_first();
    chain.enter_next();
    return count_switch(chain, from.passed);
  }
  /// Called by the scheduler at each tick: makes sure that ready coroutines proceed; ends the fibers with the runtime.
  void poll() noexcept;

 private:
  friend class coroutine_agent;
#if defined(__GNUC__) && !defined(__clang__)
  /// gcc makes a transfer a call, which stays on the stack until the chain waits: below -O2, and with some sanitizers.
  static constexpr bool transfers_are_calls = true;
#else
  static constexpr bool transfers_are_calls = false;
#endif
  static constexpr unsigned max_calls = 16;
  /// After this number of chains, the other fibers of the worker have a turn.
  static constexpr unsigned coroutine_budget = 8;

  /// On the stack of a fiber that resumes coroutines.
  struct active_resume {
    const agent* fiber;
    active_resume* next;
    bool in_chain = false;  ///< not in its loop
  };
  struct ready_list {
    coroutine_agent* first = nullptr;
    coroutine_agent* last = nullptr;
    PIRN_ALWAYS_INLINE void append(coroutine_agent& who) noexcept {
      who.next = nullptr;
      if (first != nullptr) {
        last->next = &who;
      } else {
        first = &who;
      }
      last = &who;
    }
    PIRN_ALWAYS_INLINE void drop_first() noexcept { first = static_cast<coroutine_agent*>(first->next); }
  };

  [[nodiscard]] bool add_fiber() noexcept;
  PIRN_NOINLINE void wake_idle() noexcept;
  PIRN_NOINLINE std::coroutine_handle<> yield_slow(coroutine_agent& from) noexcept;
  void resume_all() noexcept;
  void resume(coroutine_agent& chain, std::coroutine_handle<> from) noexcept;
  /// Whether each of the fibers waits in a call that a chain has made; `or_ready`: or has given way in one.
  [[nodiscard]] bool all_held_up(bool or_ready) const noexcept;
  /// Gives the ready chains a budget, before which the fibers of the worker had a turn.
  void grant_budget() noexcept {
    budget_ = coroutine_budget;
    ++refills_;
  }
  /// Returns how many chains have been resumed.
  [[nodiscard]] std::uint64_t resumed() const noexcept { return refills_ * coroutine_budget - budget_; }
  /// Whether the running fiber is in `switching_`.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool switches_here() const noexcept { return home_.queue.running() == switching_; }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool may_switch(unsigned passed) noexcept {
    return ready_.first != nullptr && switches_here() && (!transfers_are_calls || passed + 1 < max_calls) &&
           (budget_ != 0 || refill_budget());
  }
  /// Spares the way back to the fiber where that would only yield to itself. False if another fiber is ready, or a tick
  /// is due.
  [[nodiscard]] PIRN_NOINLINE bool refill_budget() noexcept;
  PIRN_ALWAYS_INLINE std::coroutine_handle<> count_switch(coroutine_agent& to, unsigned passed) noexcept {
    --budget_;
    if constexpr (transfers_are_calls) {
      to.passed = passed + 1;
    }
    return to.continuation;
  }

  worker& home_;
  ready_list ready_;
  /// The fiber that has resumed a chain from its loop last, if the chains may switch there to others. Null while a task
  /// that runs in it awaits another one by `await`: what that begins is not to run the worker's other tasks.
  const run_node* switching_ = nullptr;
  const inherited_context* inherited_ = nullptr;  ///< of that fiber
  unsigned budget_ = coroutine_budget;            ///< chains to resume until the fibers of the worker have a turn
  unsigned idle_fibers_ = 0;                      ///< in `idle_`, or notified and not running yet
  unsigned fibers_ = 0;
  active_resume* active_ = nullptr;  ///< the fibers
  std::uint64_t refills_ = 1;        ///< of the budget
  std::uint64_t resumed_at_last_poll_ = 0;
  /// From `pass` to the `resume` in which the call of a coroutine then returns, with nothing in between.
  std::coroutine_handle<> left_over_;
  wait_list idle_;  ///< fibers without work
  one_worker only_home_;
};

PIRN_ALWAYS_INLINE bool coroutine_agent::has_nothing_bound(const inherited_context& here) const noexcept {
  return values_ == nullptr && here.values == nullptr && here.innermost == innermost_;
}

PIRN_ALWAYS_INLINE void coroutine_agent::leave() noexcept {
  coroutine_runner& by = coroutine_runner::here();
  if (!by.switches_here() || !has_nothing_bound(*by.inherited_)) [[unlikely]] {
    leave_slow();
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
