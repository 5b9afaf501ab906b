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
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
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

/// Schedules waiters whose waits were claimed, after the lock is released: one at the front, a chain at the back.
PIRN_ALWAYS_INLINE void schedule_from_task(waiter* woken) noexcept {
  if (woken == nullptr) {
    return;
  }
  if (woken->next != nullptr) [[unlikely]] {
    wait_list::schedule_all(woken);
    return;
  }
  agent& who = *woken->wake.agent();
  if (who.kind() == agent_kind::coroutine) {
    auto& chain = static_cast<coroutine_agent&>(who);
    if (&chain.home() == current_worker()) [[likely]] {
      coroutine_runner::here().push(chain);
      return;
    }
  }
  make_ready(who, placement::front);
}

/// The common part of the awaiters for one channel, and all that they know of its inside.
template <class T, class Domain>
class channel_awaiter : public own_awaiter {
 public:
  channel_awaiter(const channel_awaiter&) = delete;
  channel_awaiter& operator=(const channel_awaiter&) = delete;

 protected:
  using channel = pirn::channel<T, Domain>;
  using exchange = typename channel::exchange;

  channel_awaiter(channel& with, void* object, platform::time_point deadline) noexcept
      : channel_(with), deadline_(deadline), exchange_{object} {}

  /// Receives into or sends from the exchange. False if the task must wait; then the lock of the channel is held.
  PIRN_ALWAYS_INLINE bool receive_now() {
    return attempt([this](waiter*& woken) { return channel_.receive_locked(exchange_, woken); });
  }
  PIRN_ALWAYS_INLINE bool send_now(T& value) {
    return attempt([&](waiter*& woken) { return !channel_.closed_ && channel_.send_locked(value, woken); });
  }
  /// Begins the wait, with that lock held, and returns the result for `await_suspend`.
  PIRN_ALWAYS_INLINE std::coroutine_handle<> begin_receive(coroutine_agent& who, std::coroutine_handle<> at) noexcept {
    return begin(who, at, channel_.receivers_, "value in channel");
  }
  PIRN_ALWAYS_INLINE std::coroutine_handle<> begin_send(coroutine_agent& who, std::coroutine_handle<> at) noexcept {
    return begin(who, at, channel_.senders_, "room in channel");
  }
  /// Returns why the wait has ended.
  PIRN_ALWAYS_INLINE wake_reason end_receive() noexcept { return end(channel_.receivers_); }
  PIRN_ALWAYS_INLINE wake_reason end_send() noexcept { return end(channel_.senders_); }

  enum class progress : std::uint8_t { none, done, closed, waits };

  channel& channel_;
  platform::time_point deadline_;
  exchange exchange_;
  progress progress_ = progress::none;

 private:
  using entry = list_entry<typename Domain::lock>;

  template <class Attempt>
  PIRN_ALWAYS_INLINE bool attempt(const Attempt& what) {
    waiter* woken = nullptr;
    channel_.lock_.lock();
    try {
      progress_ = what(woken) ? progress::done : channel_.closed_ ? progress::closed : progress::waits;
    } catch (...) {
      channel_.lock_.unlock();
      wait_list::schedule_all(woken);  // it tries again
      throw;
    }
    if (progress_ == progress::waits) {
      return false;
    }
    channel_.lock_.unlock();
    schedule_from_task(woken);
    return true;
  }
  PIRN_ALWAYS_INLINE std::coroutine_handle<> begin(coroutine_agent& who, std::coroutine_handle<> at, wait_list& in,
                                                   const char* what) noexcept {
    entry here{in, channel_.lock_, node_, &exchange_};
    return wait_.begin(who, at, {.deadline = deadline_, .what = what, .object = &channel_}, here);
  }
  PIRN_ALWAYS_INLINE wake_reason end(wait_list& in) noexcept {
    entry here{in, channel_.lock_, node_};
    return wait_.end(here);
  }

  coroutine_wait wait_;
  waiter_place node_;
};

template <class T, class Domain>
class receive_awaiter : public channel_awaiter<T, Domain> {
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "co::receive moves the value once more at the end, and a value whose move throws would be lost: "
                "receive it into a variable, by co_await co::select(pirn::receive(channel, variable))");
  using base = channel_awaiter<T, Domain>;

 public:
  receive_awaiter(channel<T, Domain>& from, platform::time_point deadline) noexcept : base(from, &result_, deadline) {}

  PIRN_ALWAYS_INLINE bool await_ready() { return this->receive_now(); }
  template <task_like Promise>
  PIRN_ALWAYS_INLINE std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
    return this->begin_receive(h.promise().chain(), h);
  }
  PIRN_ALWAYS_INLINE std::expected<T, wait_error> await_resume() {
    if (this->progress_ == base::progress::waits) {
      if (const wake_reason why = this->end_receive(); why != wake_reason::notified) [[unlikely]] {
        return std::unexpected(error_of(why));
      }
    }
    return std::move(result_);
  }

 private:
  std::expected<T, wait_error> result_{std::unexpect, wait_error::closed};  // as it stays where the channel is closed
};

template <class T, class Domain>
class send_awaiter : public channel_awaiter<T, Domain> {
  using base = channel_awaiter<T, Domain>;

 public:
  send_awaiter(channel<T, Domain>& to, T& given, platform::time_point deadline) noexcept
      : base(to, std::addressof(given), deadline), value_(given) {}

  PIRN_ALWAYS_INLINE bool await_ready() { return this->send_now(value_); }
  template <task_like Promise>
  PIRN_ALWAYS_INLINE std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
    return this->begin_send(h.promise().chain(), h);
  }
  PIRN_ALWAYS_INLINE std::expected<void, wait_error> await_resume() {
    if (this->progress_ == base::progress::closed) [[unlikely]] {
      return std::unexpected(wait_error::closed);
    }
    if (this->progress_ == base::progress::waits) {
      if (const wake_reason why = this->end_send(); why != wake_reason::notified) [[unlikely]] {
        return std::unexpected(error_of(why));
      }
      if (!this->exchange_.moved) [[unlikely]] {
        return this->channel_.send(std::move(value_),
                                   this->deadline_);  // closed, or so rare that the fiber may wait for it
      }
    }
    return {};
  }

 private:
  T& value_;
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
