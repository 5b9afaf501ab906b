// A dispatcher of swapped tasks that preempts those that do not block (after usched's s_preempt). A timer of the OS
// thread's CPU time sends a signal, whose handler asks the policy.
//
//   struct scheduler { ... bool preempt(pirn::swapped_task& running) noexcept; };  // beside next, allocate and free
//   PIRN_PREEMPTIBLE double sum(long n) { ... }                                    // a loop that computes
//   pirn::preemptive_swap dispatcher(policy, {.signal = SIGRTMIN + 1, .every = 10ms});
//   dispatcher.run();
//
// A task is preempted in a function that the program has marked with PIRN_PREEMPTIBLE, at any instruction, while that
// is the innermost function. Elsewhere the request waits for a safe point: `preemption_point`.
//
// A task that is cancelled while it is preempted does not unwind out of the handler. At an arbitrary instruction the
// tables of exceptions do not say which objects exist, and a function that cannot throw would end the program. The task
// is resumed, leaves the handler, and unwinds at its next safe point or block.
#pragma once

#include <cstddef>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/context/detail/outermost_frame.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/coro/detail/running_dispatchers.hpp"
#include "pirn/coro/detail/swap_image.hpp"
#include "pirn/coro/detail/swap_preempter.hpp"
#include "pirn/coro/expert/stack_swap.hpp"
#include "pirn/coro/expert/swap_policy.hpp"
#include "pirn/coro/expert/swap_shrink.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/time.hpp"

/// Marks a function in which a swapped task of a `preemptive_swap` may be preempted at any instruction, though not in
/// functions that it calls. It must not be called by a signal handler, nor by code that holds a lock or is not
/// reentrant, as a comparison function that is passed to a library may be. It must not be inline, constexpr or a
/// template, must not itself resume or yield a coroutine, and is not called by the policy.
#define PIRN_PREEMPTIBLE __attribute__((__section__("pirn_preemptible"), __noinline__))

/// \cond the section's bounds, which the linker defines where a function is marked
// NOLINTBEGIN(bugprone-dynamic-static-initializers,bugprone-reserved-identifier): declarations of the linker's names
extern "C" {
extern const char __start_pirn_preemptible[] __attribute__((weak, visibility("hidden")));
extern const char __stop_pirn_preemptible[] __attribute__((weak, visibility("hidden")));
}
// NOLINTEND(bugprone-dynamic-static-initializers,bugprone-reserved-identifier)
/// \endcond

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A range of instructions in which tasks may be preempted.
struct preemptible_code {
  const char* begin = nullptr;  ///< the first one
  const char* end = nullptr;    ///< behind the last one

  /// Returns the functions marked PIRN_PREEMPTIBLE of the calling program or shared library.
  [[nodiscard]] PIRN_ALWAYS_INLINE static preemptible_code of_caller() noexcept {
    return {__start_pirn_preemptible, __stop_pirn_preemptible};
  }
};

/// When and where a `preemptive_swap` preempts its tasks.
struct preemption_options {
  /// The signal, from SIGRTMIN to SIGRTMAX or another that the program does not use. `run` replaces its handler.
  int signal = 0;
  /// The CPU time of the OS thread between two questions, rounded up to the kernel's ticks (1 to 10 ms); 0: none.
  time_span every = {};
  /// Marked functions. The default is those of the module that makes the options.
  preemptible_code code = preemptible_code::of_caller();
};

namespace detail {

/// A policy in whose functions no task is preempted.
template <class Policy>
struct guarded_policy {
  static constexpr swap_shrink shrink = shrink_of<Policy>;

  swapped_task* next() const noexcept {
    const swap_preempter::policy_call now(preempter);
    return policy.next();
  }
  void* allocate(std::size_t size) const noexcept {
    const swap_preempter::policy_call now(preempter);
    return policy.allocate(size);
  }
  void free(void* buffer, std::size_t size) const noexcept {
    const swap_preempter::policy_call now(preempter);
    policy.free(buffer, size);
  }
  bool preempt(swapped_task& running) const noexcept {
    const swap_preempter::policy_call now(preempter);
    return policy.preempt(running);
  }

  Policy& policy;
  swap_preempter& preempter;
};

/// A base, so that it is made before the dispatcher that asks it.
template <class Policy>
struct with_guarded_policy {
  guarded_policy<Policy> guarded;
};

/// Returns whether the frames from the caller's up to `end` are those of one stack, and not of a body whose stack lies
/// in a frame between. A walk of the stack: some microseconds. False where a frame has no unwind tables.
PIRN_COLD inline bool frames_reach(const char* end) noexcept {
  constexpr arch::word largest_root = 32;  // of all instruction sets; the root of a body in a frame lies lower
  return find_outermost_frame().sp + largest_root >= reinterpret_cast<arch::word>(end);
}

}  // namespace detail

/// A `stack_swap` whose policy may preempt tasks that compute. The functions that are not described here are those of
/// `stack_swap`. Costs what `stack_swap` costs, and a call for each block.
///
/// A task that is preempted has the kernel's signal frame in its image (up to 4 KiB), its `errno` and its exceptions in
/// flight. Without memory for that, and with an open scope, it runs on until the next signal. A task that is being
/// unwound is not preempted, nor is one that runs in a coroutine, generator or continuation.
///
/// Under sanitizers, and on other processors than x86 and AArch64, tasks are preempted at safe points only.
template <class Policy>
class preemptive_swap : detail::swap_preempter,
                        detail::with_guarded_policy<Policy>,
                        stack_swap<detail::guarded_policy<Policy>> {
  static_assert(preemptive_swap_policy<Policy>, "the policy needs next, allocate, free and preempt, all noexcept");
  using swap = stack_swap<detail::guarded_policy<Policy>>;

 public:
  /// Makes a dispatcher that asks `policy`, which must outlive it.
  PIRN_ALWAYS_INLINE explicit preemptive_swap(Policy& policy, preemption_options options = {}) noexcept
      : swap_preempter(options.signal, options.every, options.code.begin, options.code.end, &preempt_at),
        detail::with_guarded_policy<Policy>{{policy, *this}},
        swap(this->guarded) {}

  /// As `stack_swap::run`, and preempts tasks meanwhile. Must be called on the stack that the system has made for the
  /// OS thread, outside of swapped tasks (`nested`). The handler stays installed, without effect, when it returns.
  swap_error run() {
    if (swap::running_) {
      return swap_error::running;
    }
    if (!runs_outermost()) {
      return swap_error::nested;
    }
    const timer_of_thread timer(*this);
    return timer.refused() ? swap_error::no_timer : swap::run();
  }

  /// As `stack_swap::block`. A task that was cancelled while it was preempted unwinds instead: it calls
  /// `preemption_point` before it puts itself among those for `next`, or takes itself out again. In a destructor that
  /// an exception runs it blocks, and unwinds later.
  [[nodiscard]] PIRN_NOINLINE swap_error block() {
    if (was_cancelled()) {
      if (may_unwind()) {
        swap::abort();
      }
      return swap::block_if([] { return true; }, [&] { stay_cancelled(); });
    }
    return swap::block();
  }

  /// Blocks the running task if a signal came where it could not be preempted, and the policy now says so. Unwinds it
  /// as `block` does if it was cancelled. Does nothing outside of tasks, and in a coroutine. Costs a load and a test
  /// otherwise. For loops that are not in marked functions.
  PIRN_ALWAYS_INLINE void preemption_point() {
    if (due_ != 0) [[unlikely]] {
      preempt_here();
    }
  }

  using swap::abort;
  using swap::cancel;
  using swap::current;
  using swap::discard;
  using swap::statistics;

 private:
  [[nodiscard]] bool was_cancelled() const noexcept { return (swap::current_->state_ & swapped_task::cancelled) != 0; }
  [[nodiscard]] static bool may_unwind() noexcept { return exception_globals::of_thread().uncaught == 0; }
  /// Called when a task is back that was preempted: if it was cancelled, it unwinds later.
  void stay_cancelled() noexcept {
    if (was_cancelled()) {
      swap::unwinding_.reset();
      due_ = 1;
    }
  }

  PIRN_NOINLINE bool runs_outermost() noexcept {
    const char* const floor = detail::swap_floor();
    detail::native_stack& native = swap::stack_;
    if (!native.holds(floor)) {
      native = detail::native_stack::of_thread();
    }
    return native.holds(floor) && !detail::running_dispatchers::any_between(
                                      reinterpret_cast<arch::word>(floor),
                                      reinterpret_cast<arch::word>(native.low) + static_cast<arch::word>(native.size));
  }

  /// Returns whether a task runs, and has the position in its frames.
  [[nodiscard]] bool is_in_task(const char* sp) noexcept {
    const char* const end = swap::place_.end();
    return current() != nullptr && sp < end && swap::stack_.holds(sp) &&
           (!detail::frame_bodies::may_hold(reinterpret_cast<arch::word>(sp), reinterpret_cast<arch::word>(end)) ||
            detail::frames_reach(end));
  }

  static bool preempt_at(swap_preempter& base, const char* sp) noexcept {
    auto& self = static_cast<preemptive_swap&>(base);
    if (!self.is_in_task(sp)) {
      return false;
    }
    self.ask();
    return true;
  }
  /// Asks the policy, and blocks the running task if it says so. Never unwinds: its caller may be the handler.
  PIRN_NOINLINE void ask() noexcept {
    swapped_task& self = *swap::current_;
    due_ = 0;
    static_cast<void>(swap::block_if([&] { return this->guarded.preempt(self); }, [&] { stay_cancelled(); }));
    if (was_cancelled()) {
      due_ = 1;  // also where it has not blocked
    }
  }
  PIRN_NOINLINE void preempt_here() {
    if (is_in_task(detail::swap_floor())) {
      if (!was_cancelled() || !may_unwind()) {
        ask();
      }
      if (was_cancelled() && may_unwind()) {
        swap::abort();
      }
    }
  }
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
