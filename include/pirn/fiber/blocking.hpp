// Calls that block an OS thread, made without blocking a worker.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "pirn/fiber/scope.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// A call on its way to another thread and back; lives on the stack of the fiber that waits for it.
struct blocking_call {
  void (*run)(blocking_call&) noexcept;
  waker caller = {};
  blocking_call* next = nullptr;
  arch::word body = 0;  ///< where it is made, if on the stack of a body; that body must not yield meanwhile
};
/// Suspends the fiber that `here` runs until a thread of its runtime has run the call.
void run_blocking(worker& here, blocking_call& call);

}  // namespace detail

/// Calls `f` on an OS thread for blocking calls, and returns its result or rethrows its exception. Only the calling
/// fiber waits; its worker runs other fibers. On a plain thread, and within another `f`, it calls `f` directly.
///
/// The threads belong to the runtime. One is started if none is idle, up to `runtime_options::max_blocking_threads`;
/// beyond that limit calls wait, first come, first served. A thread that has had no work for
/// `runtime_options::blocking_idle_time` ends. Throws std::system_error, before `f` is called, if a thread is needed
/// and cannot be started, or if the runtime may have no such threads.
///
/// Suspension point, but neither a stop nor a deadline ends it: the caller waits until `f` has returned, so `f` may
/// refer to the caller's variables. To make `f` end early, give it a stop_token to check. `f` is on a plain thread: a
/// lookup of the current fiber there (`this_fiber`, fiber_local, context_value) does not find the caller.
template <class F>
std::invoke_result_t<F> blocking(F&& f) {
  detail::worker* const here = detail::current_worker();
  if (here == nullptr) {
    return std::invoke(std::forward<F>(f));
  }
  struct call_of_f : detail::blocking_call {
    explicit call_of_f(std::remove_reference_t<F>& given) noexcept
        : blocking_call{[](blocking_call& call) noexcept { static_cast<call_of_f&>(call).make(); }}, f(given) {}
    void make() noexcept { outcome.fill(std::forward<F>(f)); }
    std::remove_reference_t<F>& f;
    detail::result_or_error<F> outcome;
  };
  call_of_f call(f);
  detail::run_blocking(*here, call);
  return call.outcome.take();
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
