// Waits for the first of several events, as the select statement of Go.
//
// The cases of a select are entries of one wait (`wait_set`): they share its epoch, so the waker that claims it through
// one of them decides the select. A select looks at its cases and enters their lists with the locks of all held, taken
// in the order of their addresses. A waker that fires a case of a waiting select needs the lock of that case only. A
// local case has no lock: its waker is a fiber of the same worker.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "pirn/fiber/stop.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/select_case.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The result of a select; for instance for `auto [index, outcome] = select(...)`.
struct selection {
  /// The case that fired, counted from 0; the number of cases if none did.
  std::size_t index;
  /// Success if that case did what it says. `closed` if the channel of the case at `index` was closed. If no case
  /// fired, the reason: `stopped` or `expired`, or `timed_out` for a `try_select` that found nothing ready.
  std::expected<void, wait_error> outcome;
};

namespace detail {

enum class select_mode : std::uint8_t { wait, only_try };
selection select_among(std::span<select_case* const> cases, select_mode mode);

/// Moves a received value into `Place`, a variable of the caller.
template <class T, class Place, class Domain>
class receive_case final : public select_case {
 public:
  receive_case(channel<T, Domain>& from, Place& into) noexcept
      : select_case(from.lock_, from.receivers_, &taker_), from_(from), taker_{std::addressof(into), &deliver} {}

  state attempt(waiter*& woken) override {
    return from_.receive_locked(taker_, woken) ? state::done : from_.closed_ ? state::closed : state::must_wait;
  }
  [[nodiscard]] bool settled() const noexcept override { return taker_.moved; }

 private:
  static void deliver(void* place, T& value) {
    auto& into = *static_cast<Place*>(place);
    if constexpr (std::same_as<Place, std::optional<T>>) {
      into.emplace(std::move(value));  // also where a T cannot be assigned
    } else {
      into = std::move(value);
    }
  }

  channel<T, Domain>& from_;
  typename channel<T, Domain>::exchange taker_;
};

/// Sends what `Value` refers to or has.
template <class T, class Value, class Domain>
class send_case final : public select_case {
 public:
  template <class U>
  send_case(channel<T, Domain>& to, U& value)
      : select_case(to.lock_, to.senders_, &offer_), to_(to), value_(value), offer_{std::addressof(value_)} {}

  state attempt(waiter*& woken) override {
    return to_.closed_ ? state::closed : to_.send_locked(value_, woken) ? state::done : state::must_wait;
  }
  [[nodiscard]] bool settled() const noexcept override { return offer_.moved; }

 private:
  channel<T, Domain>& to_;
  Value value_;
  typename channel<T, Domain>::exchange offer_;
};

template <class Domain>
struct given_event {
  basic_event<Domain>& what;
};
/// An event that a stop sets.
struct stop_event {
  struct setter {
    event* what;
    void operator()() const noexcept { what->set(); }
  };
  explicit stop_event(const stop_token& token) noexcept : call(token, setter{&what}) {}
  event what;
  stop_callback<setter> call;
};
template <class Source>
class event_case final : Source, public select_case {
 public:
  template <class From>
  explicit event_case(From& from) noexcept
      : Source{from}, select_case(this->what.waiters_.own_lock(), this->what.waiters_.list()) {
    entry.in_front = this->what.rule_.order() == wait_order::lifo;
  }

  state attempt(waiter*& /*woken*/) override { return this->what.pass_or_mark() ? state::done : state::must_wait; }
};

class until_case final : public select_case {
 public:
  using select_case::select_case;
};

}  // namespace detail

/// Makes a case of select that takes the oldest value of `from` and moves it into `into`, by assignment or, if that is
/// a `std::optional<T>`, by `emplace`. If the case does not fire, or the channel is closed, `into` is unchanged.
template <class T, class Domain, class Place>
  requires std::assignable_from<Place&, T> || std::same_as<Place, std::optional<T>>
[[nodiscard]] detail::receive_case<T, Place, Domain> receive(channel<T, Domain>& from, Place& into) noexcept {
  return detail::receive_case<T, Place, Domain>(from, into);
}

/// Makes a case of select that sends `value` to `to`. If the case does not fire, or the channel is closed, `value` is
/// untouched.
template <class T, class Domain>
[[nodiscard]] detail::send_case<T, T&, Domain> send(channel<T, Domain>& to, std::type_identity_t<T>&& value) noexcept {
  return detail::send_case<T, T&, Domain>(to, value);
}
/// As `send`, but of a copy of `value`, made in any case. Throws what copying a T throws.
template <std::copy_constructible T, class Domain>
[[nodiscard]] detail::send_case<T, T, Domain> send(channel<T, Domain>& to, const std::type_identity_t<T>& value) {
  return detail::send_case<T, T, Domain>(to, value);
}

/// Makes a case of select that passes the event `what`; automatic reset then resets it.
template <class Domain>
[[nodiscard]] detail::event_case<detail::given_event<Domain>> wait(detail::basic_event<Domain>& what) noexcept {
  return detail::event_case<detail::given_event<Domain>>(what);
}
namespace local {
using pirn::wait;
}  // namespace local
/// Makes a case of select that fires once a stop was requested through `token`. The caller's own stop ends any select
/// without a case.
[[nodiscard]] inline detail::event_case<detail::stop_event> wait(const stop_token& token) noexcept {
  return detail::event_case<detail::stop_event>(token);
}

/// Makes a case of select that fires once `when` has come, if nothing else was ready before. Of several only the
/// nearest can fire.
[[nodiscard]] inline detail::until_case until(time_limit when) noexcept { return detail::until_case(when); }

/// A case. It must be made in the call, since it refers to the arguments of its maker.
template <class Case>
concept selectable = std::derived_from<Case, select_case>;

/// Suspends until one of the cases can do what it says, lets exactly one do it, and returns which. If several can, each
/// fires with a chance of at least 1 in the number of cases, so none starves. A closed channel makes its case ready,
/// with the outcome `closed`: leave it out of the next select. Ends without a case, and with nothing done, if the
/// caller is asked to stop (`stopped`) or the deadline of an enclosing scope passes (`expired`); a case that is ready
/// fires in any case. A channel or event may be in several cases.
///
/// Fibers of any worker and plain threads may select on the same channels and events, in any order, also while others
/// use these one at a time. A select with a local case must run in a pinned fiber of the case's worker. Does not
/// allocate. O(cases), twice that if it suspends. The locks of all cases are held while it looks: besides what is said
/// at `channel`, moving a value must not use any channel or event of the select. Throws what moving a value throws;
/// then nothing was done, if the move itself guarantees that.
template <selectable... Cases>
  requires(sizeof...(Cases) > 0)
selection select(Cases&&... cases) {
  return detail::select_among(std::array<select_case*, sizeof...(Cases)>{&cases...}, detail::select_mode::wait);
}

/// As `select`, but never suspends: if no case is ready, and no `until` has come, its outcome is `timed_out`.
template <selectable... Cases>
  requires(sizeof...(Cases) > 0)
selection try_select(Cases&&... cases) {
  return detail::select_among(std::array<select_case*, sizeof...(Cases)>{&cases...}, detail::select_mode::only_try);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
