// Sends a request through one channel and receives the answer from another, in one step.
#pragma once

#include "pirn/fiber/this_fiber.hpp"
#include "pirn/sync/channel.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A call: `to.send(value)`, then `answers.receive()`. If the receiver that waits in `to` is a fiber of the caller's
/// worker, the wait for the answer begins before the switch to it, so the two are one switch, and the value goes in a
/// register. An answer sent by a call finds its receiver waiting and returns in the same way.
template <class T, class U, class Domain>
class channel_call {
  using requests = channel<T, Domain>;
  using results = channel<U, Domain>;
  using received = typename results::received;

 public:
  template <bool Again = true>
  static PIRN_INLINE_FOR_SPEED received run(requests& to, T& value, results& answers, platform::time_point deadline) {
    if constexpr (in_words) {
      worker* const here = current_worker();
      if (deadline == platform::never && here != nullptr && running_fiber(here)->is_pinned_to(here) &&
          may_leave_with_word(here)) [[likely]] {
        to.lock_.lock();
        waiter* const first = to.closed_ ? nullptr : to.receivers_.front();
        if (first != nullptr && requests::exchange::of(*first).takes_word &&
            pinned_fiber(first->wake.agent(), here) != nullptr) [[likely]] {
          waiter* const claimed = to.receivers_.claim_first();
          if (claimed == first) [[likely]] {
            to.lock_.unlock();
            return exchange_words(here, *first, value, answers);
          }
          if (claimed != nullptr) {
            return after_giving(to, *claimed, value, answers);
          }
        }
        to.lock_.unlock();
      }
    }
    return one_by_one<Again>(to, value, answers, deadline);
  }

 private:
  static constexpr bool in_words = fits_word<T> && fits_word<U>;

  /// Whether a receiver may be on its way to `to`, for which the caller should make way once. Callers that waited to
  /// send now would find each other so at every call.
  static bool partner_may_come(requests& to) noexcept {
    const worker* const here = current_worker();
    if (here == nullptr || !here->queue.has_ready()) {
      return false;
    }
    const platform::spin_guard guard(to.lock_);
    return !to.closed_ && to.receivers_.empty() && !to.values_.has_place();
  }

  /// Runs the fiber that waits in `to`, which was claimed, with the value, while the caller waits for the answer.
  static PIRN_ALWAYS_INLINE received exchange_words(worker* here, const waiter& claimed, T& value, results& answers) {
    auto& taker = requests::exchange::of(claimed);
    auto* const next = &static_cast<fiber_control&>(*claimed.wake.agent());
    const wait_options options{.what = "value in channel", .object = &answers};
    answers.lock_.lock();
    if (!answers.values_.none() || !answers.senders_.empty() || answers.closed_) [[unlikely]] {
      answers.lock_.unlock();
      give(taker, next, value);
      return answers.receive();
    }
    received result(std::unexpect, wait_error::timed_out);
    typename results::exchange mine{&result};
    mine.takes_word = true;
    waiter_place node;
    list_entry<typename Domain::lock> entry{answers.receivers_, answers.lock_, node, &mine};
    std::uintptr_t carried = to_word(value);
    bool switched = false;
    taker.word_given = true;
    const wake_reason reason = suspend(calling_way{here, next, &carried, &switched}, *running_fiber(here),
                                       wait_kind::stoppable, options, entry);
    if (mine.word_given) [[likely]] {
      return received(std::in_place, of_word<U>(carried));
    }
    if (!switched) {  // a stop has refused the wait
      taker.word_given = false;
      give(taker, next, value);
    }
    if (reason != wake_reason::notified) {
      return std::unexpected(error_of(reason));
    }
    return mine.moved ? std::move(result) : answers.receive();
  }
  /// Gives the value to a claimed receiver that takes words in the ordinary way, and wakes it.
  static PIRN_NOINLINE void give(typename requests::exchange& taker, fiber_control* next, T& value) noexcept {
    taker.take(value);
    taker.moved = true;
    schedule(*next, placement::front);
  }
  /// Gives the value to any claimed receiver, with the lock held, and receives.
  static PIRN_NONE PIRN_NOINLINE received after_giving(requests& to, waiter& claimed, T& value, results& answers) {
    to.template give_into_place<wake_policy::enqueue>(value, &claimed);
    return answers.receive();
  }
  template <bool Again>
  static PIRN_NONE PIRN_NOINLINE received one_by_one(requests& to, T& value, results& answers,
                                                     platform::time_point deadline) {
    if constexpr (in_words && Again) {
      if (deadline == platform::never && partner_may_come(to)) {
        this_fiber::yield();
        return run<false>(to, value, answers, deadline);
      }
    }
    if (const auto sent = to.send_or_wait(value, deadline); !sent) {
      return std::unexpected(sent.error());
    }
    return answers.receive(deadline);
  }
};

}  // namespace detail

/// Sends `value` to `to` and receives the answer from `answers`: what `to.send(value, deadline)` and
/// `answers.receive(deadline)` do one after the other, with their errors. After an error the value may have been sent;
/// it is untouched if it was not. A server receives its first request, and answers each by a call that receives the
/// next. Between pinned fibers of one worker that call each other so, without a deadline, a message is one switch and
/// travels in a register, if both types are trivially copyable and of at most a word. Suspension point. Throws what
/// moving a T or a U throws. After the synchronous message passing of L4 (Liedtke 1993).
template <class T, class U, class Domain>
[[nodiscard]] PIRN_ALWAYS_INLINE std::expected<U, wait_error> call(channel<T, Domain>& to,
                                                                   std::type_identity_t<T>&& value,
                                                                   channel<U, Domain>& answers,
                                                                   time_limit deadline = platform::never) {
  return detail::channel_call<T, U, Domain>::run(to, value, answers, deadline);
}
/// As `call`, but of a copy of `value`.
template <std::copy_constructible T, class U, class Domain>
[[nodiscard]] PIRN_ALWAYS_INLINE std::expected<U, wait_error> call(channel<T, Domain>& to,
                                                                   const std::type_identity_t<T>& value,
                                                                   channel<U, Domain>& answers,
                                                                   time_limit deadline = platform::never) {
  T copy(value);
  return detail::channel_call<T, U, Domain>::run(to, copy, answers, deadline);
}
namespace local {
using pirn::call;
}  // namespace local

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
