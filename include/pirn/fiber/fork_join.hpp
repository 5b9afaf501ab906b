// Fork-join: two calls that may run at the same time, at about the price of two calls.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "pirn/context/arch_fiber.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/fiber/scope.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// The word by which the first half tells the continuation how it ended, if that was not stolen. Other words are those
/// of a switch between fibers.
inline constexpr arch::word first_half_returned = 2;
inline constexpr arch::word first_half_failed = 4;

/// The slow parts of `fork2`.
/// Makes the caller ready to fork, or throws std::system_error. Returns the next slot, which has a stack.
deque_slot* begin_fork();
/// The first step of a continuation, resumed with these words. True if it was taken: then it is a stolen continuation.
bool begin_second_half(fork_point& point, arch::word by, arch::word pending, exceptions_in_flight kept) noexcept;
/// Ends the stolen continuation, and returns as the caller once the first half has ended; returns the outcome of that.
arch::word end_stolen_continuation(fork_point& point) noexcept;
/// Ends a first half whose continuation was stolen.
[[noreturn]] void end_first_half_apart(fork_point& point, arch::word outcome) noexcept;

/// The first half of a `fork2`. No flag says whether there is a result, since the code that takes it knows.
template <class F>
class fork_call : public fork_point {
 public:
  using result = child_result<F>;
  PIRN_ALWAYS_INLINE fork_call(F& f, fiber_control* who, const inherited_context& what) noexcept
      : fork_point(who, what), f_(f) {}
  // NOLINTNEXTLINE(modernize-use-equals-default): the contents of the union are taken before
  PIRN_ALWAYS_INLINE ~fork_call() {}
  fork_call(const fork_call&) = delete;
  fork_call& operator=(const fork_call&) = delete;

  PIRN_NONE static void entry(arch::word raw, arch::word at, void* caller_sp) {
    fork_call& self = *reinterpret_cast<fork_call*>(raw);
    auto* const slot = reinterpret_cast<deque_slot*>(at);
    worker* const begun_on = current_worker();
    self.first.arrive();
    begun_on->push_continuation(slot, &self);
    const arch::word outcome = self.execute();
    worker* const here = current_worker();
    if (!here->forks.open.pop(slot, &self)) [[unlikely]] {
      end_first_half_apart(self, outcome);
    }
    self.first.leave_for_good(self.continuation);
    arch::fork_back(self.state, caller_sp, reinterpret_cast<arch::word>(here), outcome);
  }

  /// Switches to it. Afterwards the words are those that resumed the continuation.
  PIRN_ALWAYS_INLINE void run(deque_slot* at, arch::word& by, arch::word& pending) noexcept {
    on = at->on;
    first.create(on->memory.limit(), on->memory.size(), "");
    by = reinterpret_cast<arch::word>(static_cast<fork_call*>(this));
    pending = reinterpret_cast<arch::word>(at);
    continuation.leave(first);
    arch::fork_into<&entry>(state, on->root(), by, pending);
  }

  /// Takes the result if it has returned, the exception if it has failed. Once.
  PIRN_ALWAYS_INLINE result take() {
    if constexpr (std::is_reference_v<result>) {
      return static_cast<result>(*value_);
    } else {
      result taken = std::move(value_);
      std::destroy_at(&value_);
      return taken;
    }
  }
  /// Destroys what the first half has left.
  void drop(arch::word how) noexcept {
    how == first_half_failed ? std::destroy_at(&exception_) : std::destroy_at(&value_);
  }
  [[nodiscard]] std::exception_ptr take_exception() noexcept {
    std::exception_ptr taken = std::move(exception_);
    std::destroy_at(&exception_);
    return taken;
  }

 private:
  using kept = std::conditional_t<std::is_reference_v<result>, std::remove_reference_t<result>*, result>;

  PIRN_ALWAYS_INLINE arch::word execute() noexcept {
    try {
      if constexpr (std::is_reference_v<result>) {
        value_ = std::addressof(call_child(std::forward<F>(f_)));
      } else {
        ::new (static_cast<void*>(std::addressof(value_))) result(call_child(std::forward<F>(f_)));
      }
      return first_half_returned;
    } catch (...) {
      ::new (static_cast<void*>(&exception_)) std::exception_ptr(
          exception_of("the first half of fork2, or a generator that is destroyed while it is suspended there,"));
      return first_half_failed;
    }
  }

  std::remove_reference_t<F>& f_;
  union {
    kept value_;
    std::exception_ptr exception_;
  };
};

template <class F, class G>
using fork_results = std::pair<child_result<F>, child_result<G>>;

/// The continuation if it was stolen, the first half failed, or exceptions are in flight.
template <class F, class G>
PIRN_NOINLINE fork_results<F, G> end_fork(fork_call<F>& call, std::remove_reference_t<G>& g, arch::word by,
                                          arch::word pending, exceptions_in_flight kept) {
  const bool taken = begin_second_half(call, by, pending, kept);
  result_slot<child_result<G>> second;
  std::exception_ptr exception;
  try {
    second.fill(std::forward<G>(g));
  } catch (...) {
    if (!taken && std::current_exception() == nullptr) {  // the caller is unwound, as from any other call
      call.drop(pending);
      throw;
    }
    exception = exception_of("the second half of fork2");
  }
  const arch::word outcome = taken ? end_stolen_continuation(call) : pending;
  if (outcome == first_half_failed) {
    std::vector<std::exception_ptr> others;
    if (exception != nullptr) {
      others.push_back(exception);
    }
    rethrow_with(call.take_exception(), std::move(others));
  }
  child_result<F> first = call.take();
  if (exception != nullptr) {
    std::rethrow_exception(std::move(exception));
  }
  return {std::forward<child_result<F>>(first), second.take()};
}

/// As `fork2`, but readies the caller and sets exceptions in flight aside first.
template <class F, class G>
PIRN_NOINLINE fork_results<F, G> fork2_prepared(std::remove_reference_t<F>& f, std::remove_reference_t<G>& g) {
  deque_slot* const at = begin_fork();
  worker* const here = current_worker();
  fork_call<F> call(f, running_fiber(here), *here->forks.inherited);
  const exceptions_in_flight kept = std::exchange(*here->thread_exceptions, {});
  arch::word by = 0;
  arch::word pending = 0;
  call.run(at, by, pending);
  return end_fork<F, G>(call, g, by, pending, kept);
}

}  // namespace detail

/// Calls `f` and `g`, perhaps at the same time, and returns both results once both have returned: a pair, for
/// `auto [a, b] = fork2(f, g)`; void counts as std::monostate. `f` begins at once, on a stack of the runtime's default
/// size. Meanwhile the continuation of the caller, which begins with the call of `g`, may be stolen by an idle worker,
/// or, if `f` suspends, by any worker. If it was not stolen when `f` ends, `g` is called as an ordinary function. `f`
/// and `g` are always called. If one throws, its exception is rethrown; if both do, that of `f`, and
/// `attached_exceptions` has the other.
///
/// The caller must be migratable: in any other fiber and on a plain thread this throws std::system_error
/// (operation_not_permitted), and without a stack the error of the pool, before either is called. The rule about
/// thread-local addresses at `spawn_options::migratable` holds for the caller across this call: it may return on
/// another worker.
///
/// `f` runs as the calling fiber. `g` does too, or as a stolen continuation, a separate fiber that ends with it. So
/// neither may join a scope that the caller has opened (or call its `all` and the like), nor wait for what the caller
/// holds, and only `f` is certain to find the fiber_locals of the caller. Context values, deadlines and stops of the
/// caller and of its scopes reach both. Suspension point. Papers: the work-first principle and the protocol are those
/// of Cilk-5 (Frigo, Leiserson and Randall 1998); continuations of ordinary functions are stolen as by Fibril (Yang and
/// Mellor-Crummey 2016), with a stack for each first half.
template <class F, class G>
PIRN_ALWAYS_INLINE std::pair<detail::child_result<F>, detail::child_result<G>> fork2(F&& f, G&& g) {
  detail::worker* const here = detail::current_worker();
  if (here == nullptr || here->forks.open.next()->on == nullptr || here->thread_exceptions->any()) [[unlikely]] {
    return detail::fork2_prepared<F, G>(f, g);
  }
  detail::fork_call<F> call(f, detail::running_fiber(here), *here->forks.inherited);
  arch::word by = 0;
  arch::word pending = 0;
  call.run(here->forks.open.next(), by, pending);
  if (pending != detail::first_half_returned) [[unlikely]] {
    return detail::end_fork<F, G>(call, g, by, pending, {});
  }
  call.continuation.arrive();
  call.first.destroy();
  call.continuation.destroy();
  detail::child_result<F> first = call.take();
  return {std::forward<detail::child_result<F>>(first), detail::call_child(std::forward<G>(g))};
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
