// A first-in-first-out channel of values: bounded, unbounded, or without room, where sender and receiver meet.
//
// One lock guards a ring of values and two lists of waiters. In an unbounded channel, larger rings may follow the
// first. Between calls of the channel, receivers wait only while the ring is empty, and senders only while it is full.
// Receivers and senders wait together only if they are one select that does both. So a value goes straight into a
// waiting receiver's result, and the place that a receiver frees is filled at once from the first waiting sender. A
// waiter whose value could not be moved (the move threw) is woken to try again.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "pirn/fiber/expert/inline_wait.hpp"
#include "pirn/sync/detail/channel_parts.hpp"
#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

template <class T, class Domain = detail::shared_domain>
class channel;

namespace detail {
template <class T, class Place, class Domain>
class receive_case;
template <class T, class Value, class Domain>
class send_case;
template <class T, class Domain>
class channel_awaiter;
template <class T, class U, class Domain>
class channel_call;
}  // namespace detail

/// The capacity of a channel that always has room.
inline constexpr std::size_t unbounded = detail::unbounded_capacity;

/// A channel of up to `capacity()` values, which may be move-only. Fibers of any worker and plain threads share it.
/// Moving and destroying a `T` happens under the channel's lock and may not suspend nor use the channel. When a move
/// throws, the channel is as before, and the value is where it was if the move itself guarantees that. A call that need
/// not wait succeeds whatever its deadline and even if the caller was asked to stop. `Domain` is for `local::channel`.
template <class T, class Domain>
class alignas(Domain::is_local ? alignof(void*) : 64) channel {
  static_assert(std::is_object_v<T> && std::is_move_constructible_v<T>);

 public:
  using value_type = T;
  class iterator;

  /// Begins empty. Without room, a sender and a receiver wait for each other: a send that has succeeded was received.
  /// An `unbounded` channel allocates as it grows, O(log n) times in all, and then `send` may throw std::bad_alloc; it
  /// keeps room for more than half of the values that it ever held at once. Throws std::bad_alloc.
  explicit channel(std::size_t capacity = 0) : values_(capacity) {}
  /// Destroys the values left. No caller may be waiting.
  ~channel() = default;
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  /// Appends `value`, and suspends while there is no room for it. On an error (closed, timed_out, stopped, expired)
  /// `value` is untouched. Throws what moving a T throws.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> send(T&& value,
                                                                        time_limit deadline = platform::never) {
    return send_or_wait(value, deadline);
  }
  /// As `send`, with a `policy` for the receiver that waits for the value, if any.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> send(T&& value, wake_policy policy,
                                                                        time_limit deadline = platform::never) {
    return policy == wake_policy::enqueue ? send_or_wait(value, deadline)
                                          : send_or_wait<wake_policy::switch_over>(value, deadline);
  }
  /// As `send`, but of a copy of `value`. Throws what copying or moving a T throws.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> send(const T& value,
                                                                        time_limit deadline = platform::never)
    requires std::copy_constructible<T>
  {
    T copy(value);
    return send_or_wait(copy, deadline);
  }
  /// As `send`, but fails with timed_out where that would have to wait. Never suspends.
  [[nodiscard]] std::expected<void, wait_error> try_send(T&& value) { return send_now(value); }
  [[nodiscard]] std::expected<void, wait_error> try_send(const T& value)
    requires std::copy_constructible<T>
  {
    T copy(value);
    return send_now(copy);
  }

  /// Takes the oldest value, and suspends while the channel is empty. The error `closed` means that no value will come.
  /// Throws what moving a T throws; then the value is still the next.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<T, wait_error> receive(time_limit deadline = platform::never) {
    if constexpr (fits_word) {
      return receive_word(deadline);
    } else {
      return receive_object(deadline);
    }
  }
  /// As `receive`, but fails with timed_out where that would have to wait. Never suspends.
  [[nodiscard]] std::expected<T, wait_error> try_receive() {
    received result(std::unexpect, wait_error::timed_out);
    lock_.lock();
    receive_locked_or_wait<patience::none>(platform::never, result);
    return result;
  }

  /// Closes the channel: no more values can be sent; those in it can still be received. Wakes all waiters. Can be
  /// repeated.
  void close() noexcept {
    lock_.lock();
    closed_ = true;
    waiter* const receiving = receivers_.claim_all();
    waiter* const sending = senders_.claim_all();
    lock_.unlock();
    wait_list::schedule_all(receiving);
    wait_list::schedule_all(sending);
  }

  /// Returns whether the channel is closed at this moment.
  [[nodiscard]] bool closed() const noexcept {
    const platform::spin_guard guard(lock_);
    return closed_;
  }
  /// Returns the number of values in the channel at this moment. O(1), but O(log n) in an unbounded one that has grown.
  [[nodiscard]] std::size_t size() const noexcept {
    const platform::spin_guard guard(lock_);
    return values_.size();
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return values_.capacity(); }  ///< as given to the constructor

  /// `for (T& value : channel)` receives until the channel is closed and empty, or the caller is asked to stop.
  /// Several may iterate at once: each value goes to one of them.
  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

 private:
  template <class U, class Place, class D>
  friend class detail::receive_case;
  template <class U, class Value, class D>
  friend class detail::send_case;
  template <class U, class D>
  friend class detail::channel_awaiter;
  template <class U, class V, class D>
  friend class detail::channel_call;

  using received = std::expected<T, wait_error>;
  using exchange = detail::channel_exchange<T>;
  /// How long a call waits that cannot be done at once.
  enum class patience : std::uint8_t { none, until_deadline };

  /// Fills a place that has become free from the first waiting sender, if any. Returns that sender and those whose move
  /// threw, all to be made runnable.
  [[nodiscard]] waiter* take_from_sender() noexcept {
    waiter* chain = nullptr;
    while (waiter* const w = senders_.claim_first()) {
      w->next = chain;
      chain = w;
      exchange& offer = exchange::of(*w);
      try {
        values_.append(offer.offered());
        offer.moved = true;
        break;
      } catch (...) {
        continue;  // the sender tries again and sees the exception itself
      }
    }
    return chain;
  }

  /// Whether a value may be moved and destroyed in the caller's own code, because that is short and free of exceptions.
  static constexpr bool moves_quietly = std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>;
  static constexpr bool fits_word = detail::fits_word<T>;

  /// Gives the value to a waiting receiver that was claimed. With `switch_over`, a receiver that takes words gets it
  /// later (`hand_off`).
  template <wake_policy How>
  static PIRN_ALWAYS_INLINE void give(T& value, exchange& taker) {
    if (!(fits_word && How == wake_policy::switch_over && taker.takes_word)) {
      taker.take(value);
      taker.moved = true;
    }
  }
  /// Gives the value to a receiver that does not take a `received`, and wakes it. May throw even if moving a T does
  /// not.
  template <wake_policy How>
  PIRN_NOINLINE void give_into_place(T& value, waiter* woken) {
    woken->next = nullptr;
    try {
      give<How>(value, exchange::of(*woken));
    } catch (...) {
      lock_.unlock();
      wait_list::schedule_all(woken);  // without a value: it waits again
      throw;
    }
    lock_.unlock();
    detail::schedule(*woken->wake.agent(), detail::placement_of(How));
  }
  /// Gives the value to a waiting receiver or puts it into the ring. False if neither is possible.
  template <wake_policy How = wake_policy::enqueue>
  PIRN_ALWAYS_INLINE bool send_locked(T& value, waiter*& woken) {
    woken = receivers_.claim_first();
    if (woken != nullptr) {
      woken->next = nullptr;
      give<How>(value, exchange::of(*woken));
      return true;
    }
    if (!values_.has_room()) {
      return false;
    }
    values_.append(value);
    return true;
  }

  /// Takes the oldest value from the ring, or from a waiting sender if the ring has no room. False if there is no
  /// value.
  PIRN_ALWAYS_INLINE bool receive_locked(exchange& taker, waiter*& woken) {
    if (!values_.none()) {
      taker.take(values_.first());
      values_.drop_first();
      woken = take_from_sender();
      return true;
    }
    woken = senders_.claim_first();
    if (woken == nullptr) {
      return false;
    }
    woken->next = nullptr;
    exchange& offer = exchange::of(*woken);
    taker.take(offer.offered());
    offer.moved = true;
    return true;
  }

  using sent = std::expected<void, wait_error>;

  // A call that must wait switches in its caller's code, without a return to a function in between. The processor would
  // predict that such a return leads to the context that it has left.

  template <wake_policy How = wake_policy::enqueue>
  PIRN_INLINE_FOR_SPEED sent send_or_wait(T& value, platform::time_point deadline) {
    sent result;  // of a wait: gcc says that a copy of one that nothing has filled is uninitialized
    lock_.lock();
    if (!closed_ && receivers_.empty()) {
      if (values_.has_place()) {
        if constexpr (moves_quietly) {
          values_.append(value);
          lock_.unlock();
          return {};
        }
      } else if (values_.capacity() != unbounded) {
        if (wait_to_send(value, deadline, result)) [[likely]] {
          return result;
        }
        lock_.lock();
      }
    } else if constexpr (moves_quietly) {
      waiter* const next = closed_ ? nullptr : receivers_.claim_first();
      if (next != nullptr) [[likely]] {
        exchange& taker = exchange::of(*next);
        if (taker.deliver != nullptr) [[unlikely]] {
          give_into_place<How>(value, next);
          return {};
        }
        give<How>(value, taker);
        detail::agent* const who = next->wake.agent();
        lock_.unlock();
        How == wake_policy::enqueue ? detail::schedule_inline(*who, detail::placement::front)
                                    : hand_off(value, taker, who);
        return {};
      }
    }
    if (waiter* const next = send_locked_or_wait<patience::until_deadline, How>(value, deadline, result)) {
      hand_off(value, exchange::of(*next), next->wake.agent());
    }
    return result;
  }
  sent send_now(T& value) {
    sent result;
    lock_.lock();
    static_cast<void>(send_locked_or_wait<patience::none, wake_policy::enqueue>(value, platform::never, result));
    return result;
  }
  /// Sends or waits. The lock must be held, and is released. With `switch_over`, may return a receiver that waited, for
  /// `hand_off`.
  template <patience Patience, wake_policy How>
  [[nodiscard]] PIRN_NONE PIRN_NOINLINE waiter* send_locked_or_wait(T& value, platform::time_point deadline,
                                                                    sent& result) {
    for (;; lock_.lock()) {
      if (closed_) [[unlikely]] {
        lock_.unlock();
        result = std::unexpected(wait_error::closed);
        return nullptr;
      }
      waiter* woken = nullptr;
      bool done;
      try {
        done = send_locked<How>(value, woken);
      } catch (...) {
        lock_.unlock();
        wait_list::schedule_all(woken);  // without a value: it waits again
        throw;
      }
      if (done) [[likely]] {
        lock_.unlock();
        if (How == wake_policy::enqueue && woken != nullptr) {
          detail::schedule_inline(*woken->wake.agent(), detail::placement::front);
          return nullptr;
        }
        return woken;
      }
      if (Patience == patience::none) {
        lock_.unlock();
        result = std::unexpected(wait_error::timed_out);
        return nullptr;
      }
      if (wait_to_send(value, deadline, result)) {
        return nullptr;
      }
    }
  }
  /// Switches to a claimed receiver, and gives it the value unless `give<switch_over>` has done so.
  static PIRN_ALWAYS_INLINE void hand_off(T& value, exchange& taker, detail::agent* who) {
    if constexpr (fits_word) {
      if (taker.takes_word) {
        taker.word_given = true;
        if (detail::switch_to_with_value(who, detail::to_word(value))) {
          return;
        }
        taker.word_given = false;
        taker.take(value);
        taker.moved = true;
      }
    }
    detail::schedule(*who, detail::placement::direct);
  }
  /// Waits for room. The lock must be held, and is released. False if the send must be tried again.
  PIRN_ALWAYS_INLINE bool wait_to_send(T& value, platform::time_point deadline, sent& result) {
    detail::channel_offer<T> offer(value);
    const wake_reason reason = senders_.wait_inline(
        lock_, {.deadline = deadline, .what = "room in channel", .object = this}, static_cast<exchange*>(&offer));
    if (reason != wake_reason::notified) [[unlikely]] {
      result = std::unexpected(detail::error_of(reason));
      return true;
    }
    return offer.moved;
  }

  /// Receives a value that fits into a word. Its results are not visible elsewhere, so they can be in registers.
  PIRN_INLINE_FOR_SPEED received receive_word(platform::time_point deadline)
    requires fits_word
  {
    lock_.lock();
    if (!values_.none() && senders_.empty()) {
      received taken(std::in_place, std::move(values_.first()));
      values_.drop_first();
      lock_.unlock();
      return taken;
    }
    if (waiter* const next = values_.none() ? senders_.claim_first() : nullptr) {
      exchange& offer = exchange::of(*next);
      received taken(std::in_place, std::move(offer.offered()));
      release_sender(offer, *next);
      return taken;
    }
    received result(std::unexpect, wait_error::timed_out);
    if (!values_.none() || !senders_.empty() || closed_) {
      receive_locked_or_wait<patience::until_deadline>(deadline, result);
      return result;
    }
    std::uintptr_t word = 0;
    const reception got = wait_to_receive(deadline, result, word);
    if (got == reception::word) [[likely]] {
      return received(std::in_place, detail::of_word<T>(word));
    }
    if (got == reception::none) [[unlikely]] {
      lock_.lock();
      receive_locked_or_wait<patience::until_deadline>(deadline, result);
    }
    return result;
  }
  /// Tells a sender that was claimed that its value was taken, unlocks and wakes it.
  PIRN_ALWAYS_INLINE void release_sender(exchange& offer, const waiter& claimed) noexcept {
    offer.moved = true;
    detail::agent* const who = claimed.wake.agent();
    lock_.unlock();
    detail::schedule_inline(*who, detail::placement::front);
  }
  /// Receives any other value. There is one result, made where the caller wants it, so that a value is moved there at
  /// once: moving the result could throw and lose the value.
  PIRN_INLINE_FOR_SPEED received receive_object(platform::time_point deadline) {
    received result(std::unexpect, wait_error::timed_out);
    lock_.lock();
    if (moves_quietly && !values_.none() && senders_.empty()) {
      exchange::move_into(result, values_.first());
      values_.drop_first();
      lock_.unlock();
      return result;
    }
    if (waiter* const next = moves_quietly && values_.none() ? senders_.claim_first() : nullptr) {
      exchange& offer = exchange::of(*next);
      exchange::move_into(result, offer.offered());
      release_sender(offer, *next);
      return result;
    }
    if (!values_.none() || !senders_.empty() || closed_) {
      receive_locked_or_wait<patience::until_deadline>(deadline, result);
      return result;
    }
    std::uintptr_t unused = 0;
    if (wait_to_receive(deadline, result, unused) == reception::none) [[unlikely]] {
      lock_.lock();
      receive_locked_or_wait<patience::until_deadline>(deadline, result);
    }
    return result;
  }
  /// Receives or waits. The lock must be held, and is released.
  template <patience Patience>
  PIRN_NONE PIRN_NOINLINE void receive_locked_or_wait(platform::time_point deadline, received& result) {
    for (;; lock_.lock()) {
      exchange taker{&result};
      waiter* woken = nullptr;
      bool done;
      try {
        done = receive_locked(taker, woken);
      } catch (...) {
        lock_.unlock();
        wait_list::schedule_all(woken);  // with its value: it tries again
        throw;
      }
      if (done) [[likely]] {
        lock_.unlock();
        if (woken != nullptr) {
          wait_list::schedule_all(woken);
        }
        return;
      }
      if (closed_ || Patience == patience::none) {
        result = std::unexpected(closed_ ? wait_error::closed : wait_error::timed_out);
        lock_.unlock();
        return;
      }
      std::uintptr_t word = 0;
      const reception got = wait_to_receive(deadline, result, word);
      if (got == reception::none) {
        continue;
      }
      if constexpr (fits_word) {
        if (got == reception::word) {
          T value = detail::of_word<T>(word);
          exchange::move_into(result, value);
        }
      }
      return;
    }
  }
  /// The outcome of a wait to receive.
  enum class reception : std::uint8_t { none, word, result };
  /// Waits for a value, otherwise as `wait_to_send`. With `none`, the receive must be tried again.
  PIRN_ALWAYS_INLINE reception wait_to_receive(platform::time_point deadline, received& result, std::uintptr_t& word) {
    exchange taker{&result};
    const wait_options options{.deadline = deadline, .what = "value in channel", .object = this};
    wake_reason reason;
    if constexpr (fits_word) {
      reason = receivers_.wait_inline(lock_, options, &taker, word, [&taker] { taker.takes_word = true; });
      if (taker.word_given) {
        return reception::word;
      }
    } else {
      reason = receivers_.wait_inline(lock_, options, &taker);
    }
    if (reason != wake_reason::notified) [[unlikely]] {
      result = std::unexpected(detail::error_of(reason));
      return reception::result;
    }
    return taker.moved ? reception::result : reception::none;
  }

  // The parts that each call changes are in one cache line, up to the size of the oldest ring in `values_`, so that a
  // call on another worker fetches one line for the channel and one for the value.
  mutable typename Domain::lock lock_;
  bool closed_ = false;
  wait_list receivers_;
  wait_list senders_;
  detail::channel_values<T> values_;
};

/// An input iterator that holds the value received last.
template <class T, class Domain>
class channel<T, Domain>::iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  explicit iterator(channel& from) : from_(&from), current_(from.receive()) {}
  iterator(iterator&&) = default;
  iterator& operator=(iterator&&) = default;

  [[nodiscard]] T& operator*() const noexcept { return *current_; }
  [[nodiscard]] T* operator->() const noexcept { return &*current_; }
  /// Receives the next value. Suspension point.
  iterator& operator++() {
    std::destroy_at(&current_);
    try {
      // In place: moving the result could throw and lose the value.
      ::new (static_cast<void*>(&current_)) received(from_->receive());
    } catch (...) {
      std::construct_at(&current_, std::unexpect, wait_error::closed);
      throw;
    }
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept { return !i.current_.has_value(); }

 private:
  channel* from_;
  mutable received current_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
