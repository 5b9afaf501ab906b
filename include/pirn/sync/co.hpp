// More awaitables for tasks: channels, and select over several cases.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "pirn/fiber/co.hpp"
#include "pirn/sync/detail/selecting.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// The awaiter of a task's select.
template <std::size_t Count>
class select_awaiter : public own_awaiter {
 public:
  explicit select_awaiter(const std::array<select_case*, Count>& cases, time_limit deadline = platform::never) noexcept
      : cases_(cases), selecting_(cases_, deadline) {}
  select_awaiter(const select_awaiter&) = delete;
  select_awaiter& operator=(const select_awaiter&) = delete;

  bool await_ready() {
    result_ = selecting_.look();
    return result_.has_value();
  }
  template <task_like Promise>
  bool await_suspend(std::coroutine_handle<Promise> h) noexcept {
    return wait_.begin(h.promise().chain(), h, options_ = selecting_.options(), selecting_.entries());
  }
  selection await_resume() {
    if (!result_) {
      result_ = selecting_.after_wait(wait_.end(selecting_.entries()));
    }
    // The case that was woken must be attempted again: so rare that the fiber underneath may wait for it.
    return result_ ? *result_ : selecting_.run(select_mode::wait);
  }

 private:
  const std::array<select_case*, Count> cases_;
  selecting selecting_;
  wait_options options_;
  coroutine_wait wait_;
  std::optional<selection> result_;
};

/// The awaiter of a select with one case.
template <class Case>
class case_awaiter : public own_awaiter {
 public:
  bool await_ready() { return select_.await_ready(); }
  template <task_like Promise>
  bool await_suspend(std::coroutine_handle<Promise> h) noexcept {
    return select_.await_suspend(h);
  }

 protected:
  template <class Channel, class Value>
  case_awaiter(Channel& channel, Value& value, platform::time_point deadline)
      : case_(channel, value), select_({&case_}, deadline) {}
  std::expected<void, wait_error> outcome() { return select_.await_resume().outcome; }

 private:
  Case case_;
  select_awaiter<1> select_;
};

/// Holds the value to which a case refers.
template <class T>
struct case_value {
  T value;
};

template <class T, class Domain>
class receive_awaiter : case_value<std::optional<T>>, public case_awaiter<receive_case<T, std::optional<T>, Domain>> {
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "co::receive moves the value once more at the end, and a value whose move throws would be lost: "
                "receive it into a variable, by co_await co::select(pirn::receive(channel, variable))");

 public:
  receive_awaiter(channel<T, Domain>& from, platform::time_point deadline)
      : receive_awaiter::case_awaiter(from, this->value, deadline) {}
  std::expected<T, wait_error> await_resume() {
    if (const auto outcome = this->outcome(); !outcome) {
      return std::unexpected(outcome.error());
    }
    return std::move(*this->value);
  }
};

template <class T, class Domain>
class send_awaiter : public case_awaiter<send_case<T, T&, Domain>> {
 public:
  send_awaiter(channel<T, Domain>& to, T& given, platform::time_point deadline)
      : send_awaiter::case_awaiter(to, given, deadline) {}
  std::expected<void, wait_error> await_resume() { return this->outcome(); }
};

}  // namespace detail

namespace co {

/// As `channel::receive`, for a task. The value is moved once more at the end, so moving it must not throw; for other
/// types there is `co::select(pirn::receive(from, place))`.
template <class T, class Domain>
[[nodiscard]] detail::receive_awaiter<T, Domain> receive(channel<T, Domain>& from,
                                                         time_limit deadline = platform::never) {
  return detail::receive_awaiter<T, Domain>(from, deadline);
}
/// As `channel::send`, for a task. Must be awaited in the expression that makes it, since it refers to `value`. The
/// value is moved once, into the channel or to its receiver, and is untouched if the send fails.
template <class T, class Domain>
[[nodiscard]] detail::send_awaiter<T, Domain> send(channel<T, Domain>& to, std::type_identity_t<T>&& value,
                                                   time_limit deadline = platform::never) {
  return detail::send_awaiter<T, Domain>(to, value, deadline);
}

/// As `pirn::select`, with the same cases, for a task.
template <selectable... Cases>
  requires(sizeof...(Cases) > 0)
[[nodiscard]] detail::select_awaiter<sizeof...(Cases)> select(Cases&&... cases) {
  return detail::select_awaiter<sizeof...(Cases)>(std::array<select_case*, sizeof...(Cases)>{&cases...});
}

}  // namespace co
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
