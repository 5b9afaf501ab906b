// An action that is done once, by the first caller.
#pragma once

#include <functional>
#include <utility>

#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

template <class Domain>
class basic_once_flag {
 public:
  constexpr basic_once_flag() noexcept = default;
  basic_once_flag(const basic_once_flag&) = delete;
  basic_once_flag& operator=(const basic_once_flag&) = delete;

  /// Runs `body` unless that was done before, and returns once it is done; its effects are then visible. One caller at
  /// a time tries: the others suspend. If the body throws, its caller gets the exception and the next caller tries. The
  /// deadline, or a stop of the caller, ends the wait for another caller, not the body. The body may suspend; it may
  /// not call its own flag, which would wait for itself.
  template <class F>
  [[nodiscard]] std::expected<void, wait_error> call(F&& body, time_limit deadline) {
    return run(std::forward<F>(body),
               {.deadline = deadline, .what = name_of<Domain>("local call_once"), .object = this});
  }

 private:
  friend struct once_caller;

  // The word is one of these.
  static constexpr std::uint32_t fresh = 0;
  static constexpr std::uint32_t running = 1;
  static constexpr std::uint32_t waited = 2;  ///< running, and its queue may hold waiters; set under the queue's lock
  static constexpr std::uint32_t done = 3;

  /// Ends an attempt: with success, or by an exception.
  struct attempt {
    basic_once_flag& flag;
    std::uint32_t outcome = fresh;
    ~attempt() { flag.leave(outcome); }
  };

  template <class F>
  PIRN_ALWAYS_INLINE std::expected<void, wait_error> run(F&& body, const wait_options& options) {
    Domain::enter(waiters_);
    if (word_.load(platform::memory_order_acquire) == done) [[likely]] {
      return {};
    }
    const std::expected<bool, wait_error> mine = enter(options);
    if (!mine) {
      return std::unexpected(mine.error());
    }
    if (*mine) {
      attempt here{*this};
      std::forward<F>(body)();
      here.outcome = done;
    }
    return {};
  }

  /// Returns true if the caller must run the body, false if it is done.
  PIRN_DEFINED_ONCE std::expected<bool, wait_error> enter(const wait_options& options) noexcept;
  PIRN_DEFINED_ONCE void leave(std::uint32_t outcome) noexcept;

  typename Domain::template atomic<std::uint32_t> word_{fresh};
  typename Domain::queue waiters_;
};

/// Calls without a stop, for `call_once`. A friend that is a function template of another namespace would not do: gcc
/// 12 does not recognise it.
struct once_caller {
  template <class Domain, class F>
  PIRN_ALWAYS_INLINE static void call(basic_once_flag<Domain>& flag, F&& body) {
    static_cast<void>(flag.run(std::forward<F>(body),
                               {.stoppable = false, .what = name_of<Domain>("local call_once"), .object = &flag}));
  }
};

extern template class basic_once_flag<shared_domain>;

}  // namespace detail

/// A flag that says whether an action has been done, as std::once_flag. Fibers of any worker and plain threads share
/// it. Constant initialized, so it may be a global.
class once_flag : public detail::basic_once_flag<detail::shared_domain> {};

/// As std::call_once: calls `body` with `arguments` unless `flag` says that it was done. Suspends while another caller
/// runs it. A stop does not end that, since the caller relies on the effects (it does end `once_flag::call`).
template <class Domain, class F, class... Arguments>
PIRN_ALWAYS_INLINE void call_once(detail::basic_once_flag<Domain>& flag, F&& body, Arguments&&... arguments) {
  detail::once_caller::call(
      flag, [&] { static_cast<void>(std::invoke(std::forward<F>(body), std::forward<Arguments>(arguments)...)); });
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
