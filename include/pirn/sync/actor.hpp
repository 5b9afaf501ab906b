// An object with a mailbox: calls on it come one after the other, without a lock.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/fiber/detail/left_by_exit.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/sync/future.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// One call on an actor; a link of its mailbox.
struct actor_message {
  /// Does the call, and frees the message unless its sender does. With null, only frees it.
  void (*run)(actor_message*, void* state) noexcept;
  actor_message* next = nullptr;
};

/// Messages from any sender to one fiber: a stack that the fiber empties whole (Treiber 1986). Its head also says
/// whether the fiber waits, and whether the mailbox is closed.
class actor_mailbox {
 public:
  actor_mailbox() noexcept = default;
  actor_mailbox(const actor_mailbox&) = delete;
  actor_mailbox& operator=(const actor_mailbox&) = delete;

  /// Adds a message. False if closed.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool push(actor_message* message) noexcept {
    std::uintptr_t old = head_.load(platform::memory_order_relaxed);
    do {
      if ((old & closed) != 0) [[unlikely]] {
        return false;
      }
      message->next = old == waiting ? nullptr : reinterpret_cast<actor_message*>(old);
    } while (!head_.compare_exchange_weak(old, reinterpret_cast<std::uintptr_t>(message),
                                          platform::memory_order_acq_rel, platform::memory_order_relaxed));
    if (old == waiting) {
      // Only the sender that replaces the mark wakes the fiber.
      static_cast<void>(sleeper_.wake());
    }
    return true;
  }
  /// Returns all messages, oldest first; suspends while there are no messages. Null once closed and empty. For the
  /// fiber only.
  actor_message* take() noexcept;
  void close() noexcept;

 private:
  static constexpr std::uintptr_t waiting = 1;
  static constexpr std::uintptr_t closed = 2;

  platform::atomic<std::uintptr_t> head_{0};
  waker sleeper_;  ///< written by the fiber before it marks the head
};

/// The place where a caller waits for the end of its call; on the caller's stack.
class actor_reply {
 public:
  /// Waits. Not ended by a stop, since the call may use the caller's stack.
  void wait() noexcept {
    queue_.lock();
    if (done_) {
      queue_.unlock();
      return;
    }
    static_cast<void>(queue_.wait({.stoppable = false, .what = "reply of an actor", .object = this}));
  }
  void finish() noexcept {
    queue_.lock();
    done_ = true;
    queue_.notify_all_and_unlock();
  }

 private:
  wait_queue queue_;
  bool done_ = false;
};

/// A call that its sender does not wait for; on the heap.
template <class F, class State>
struct posted_call : actor_message {
  template <class G>
    requires(!std::is_same_v<std::decay_t<G>, posted_call>)
  explicit posted_call(G&& from) : actor_message{&run_it}, body(std::forward<G>(from)) {}
  static void run_it(actor_message* message, void* state) noexcept {
    const std::unique_ptr<posted_call> self(static_cast<posted_call*>(message));
    try {
      self->body(*static_cast<State*>(state));
    } catch (...) {
      report_unhandled(current_agent(), exception_of("the handler of an actor"));
    }
  }
  F body;
};

/// A call whose caller waits; on the caller's stack.
template <class F, class State>
struct awaited_call : actor_message {
  explicit awaited_call(F&& from) noexcept : actor_message{&run_it}, body(std::forward<F>(from)) {}
  static void run_it(actor_message* message, void* state) noexcept {
    auto* const self = static_cast<awaited_call*>(message);
    self->outcome.fill(std::forward<F>(self->body), *static_cast<State*>(state));
    self->reply.finish();
  }
  F&& body;
  result_or_error<F, State&> outcome;
  actor_reply reply;
};

[[noreturn]] void throw_actor_closed();
[[noreturn]] void throw_calls_itself();

}  // namespace detail

/// A `State` that only one fiber uses. Every access is sent to that fiber as a call. Calls are done in the order of
/// arrival, one after the other, so the state needs no lock. A call may suspend; the next one waits for it. Any fiber
/// of any runtime and any plain thread may send. After Hewitt's actors and Erlang's processes.
template <class State>
class actor {
 public:
  /// Makes the state from `arguments`, and a fiber for it in the caller's runtime. Throws std::system_error (no stack;
  /// on a plain thread, no runtime), std::bad_alloc and what making the state throws.
  template <class... Arguments>
    requires std::constructible_from<State, Arguments...>
  explicit actor(Arguments&&... arguments) : state_(std::forward<Arguments>(arguments)...) {
    fiber_ = spawn([this] { serve(); });
  }
  /// Makes the state and the fiber in the runtime `in`, even if a State could be made from that.
  template <class... Arguments>
    requires(std::constructible_from<State, Arguments...> &&
             !(std::same_as<std::remove_cvref_t<Arguments>, spawn_options> || ...))
  explicit actor(runtime& in, Arguments&&... arguments)
      : actor(in, spawn_options{}, std::forward<Arguments>(arguments)...) {}
  /// As with a runtime only, but with options for the fiber.
  template <class... Arguments>
    requires std::constructible_from<State, Arguments...>
  explicit actor(runtime& in, const spawn_options& options, Arguments&&... arguments)
      : state_(std::forward<Arguments>(arguments)...) {
    fiber_ = in.spawn([this] { serve(); }, options);
  }
  /// Closes the actor, and suspends until all calls that were sent are done. Not from a call on this actor.
  ~actor() {
    close();
    if (detail::fibers_are_left()) [[unlikely]] {
      fiber_.detach();
    }
    if (fiber_.joinable()) {
      fiber_.join();
    }
  }
  actor(const actor&) = delete;
  actor& operator=(const actor&) = delete;

  /// Sends `body(state)`, and does not wait for it. Never suspends. False, with `body` destroyed, if the actor is
  /// closed. An exception of the call goes to the handler of unhandled exceptions, and the actor continues. Throws
  /// std::bad_alloc and what moving `body` throws.
  template <class F>
    requires std::invocable<std::decay_t<F>&, State&>
  bool post(F&& body) {
    auto message = std::make_unique<detail::posted_call<std::decay_t<F>, State>>(std::forward<F>(body));
    if (!mailbox_.push(message.get())) {
      return false;
    }
    static_cast<void>(message.release());
    return true;
  }
  /// As `post`, but the future gets what `body(state)` returns or throws, or broken_promise if the actor is closed.
  /// Objects to which `body` refers must live until then, even if the caller stops waiting for the future.
  template <class F>
    requires std::invocable<std::decay_t<F>&, State&>
  [[nodiscard]] auto ask(F&& body) {
    packaged_task<std::invoke_result_t<std::decay_t<F>&, State&>(State&)> task(std::forward<F>(body));
    auto result = task.get_future();
    static_cast<void>(post(std::move(task)));
    return result;
  }
  /// Sends `body(state)` and suspends until it is done; returns what it returns, throws what it throws. Allocates
  /// nothing. Not ended by a stop, since `body` may use the caller's stack; a caller that wants to stop waiting uses
  /// `ask`. Throws std::system_error (operation_not_permitted) if the actor is closed, and
  /// resource_deadlock_would_occur from a call on this actor.
  template <class F>
    requires std::invocable<F, State&>
  std::invoke_result_t<F, State&> call(F&& body) {
    if (served_by_.load(platform::memory_order_relaxed) == this_fiber::number()) {
      detail::throw_calls_itself();
    }
    detail::awaited_call<F, State> message(std::forward<F>(body));
    if (!mailbox_.push(&message)) {
      detail::throw_actor_closed();
    }
    message.reply.wait();
    return message.outcome.take();
  }

  /// Takes no more calls; does those that were sent before. Can be repeated.
  void close() noexcept { mailbox_.close(); }

 private:
  /// After this number the other fibers of the worker have a turn.
  static constexpr unsigned message_budget = 64;

  void serve() noexcept {
    served_by_.store(this_fiber::number(), platform::memory_order_relaxed);
    while (detail::actor_message* message = mailbox_.take()) {
      unsigned left = message_budget;
      do {
        detail::actor_message* const next = message->next;
        message->run(message, &state_);
        message = next;
        if (--left == 0 && message != nullptr) {
          left = message_budget;
          this_fiber::yield();  // nor must a flooded mailbox
        }
      } while (message != nullptr);
      this_fiber::yield();  // calls that send others must not keep the worker to themselves
    }
  }

  State state_;
  detail::actor_mailbox mailbox_;
  platform::atomic<std::uint64_t> served_by_{~std::uint64_t{0}};  ///< the number of the actor's fiber, once that runs
  fiber fiber_;
};

template <class State>
explicit actor(State) -> actor<State>;
template <class State>
explicit actor(runtime&, State) -> actor<State>;
template <class State>
explicit actor(runtime&, spawn_options, State) -> actor<State>;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
