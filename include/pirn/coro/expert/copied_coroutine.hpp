// A coroutine that shares its stack with others. While another one uses the stack, only its live bytes are kept.
//
//   pirn::copy_stack shared(std::size_t{1} << 20);
//   std::vector<pirn::copied_coroutine<int()>> many;
//   for (int i = 0; i < 10'000'000; ++i) {
//     many.emplace_back(shared, [i](auto& yield) { for (int n = i;; ++n) yield(n); return 0; });
//   }
//   many[7].resume();  // 7
//
// A coroutine costs 48 bytes and an image of its live frames. With the allocator's bytes this is about 80 bytes where
// the frames are small; a separate stack would cost at least a page. A resume copies two images, unless the coroutine
// is the one resumed last on its stack. Only the coroutine itself may use pointers into its frames: while it is
// suspended, frames of another coroutine may lie there.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "pirn/coro/detail/copied_core.hpp"
#include "pirn/stack/expert/copy_stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The result of a resume, or the reason why the resume could not be tried.
template <class T>
class copied_result {
  using stored = std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>;

 public:
  /// A result without a value, for the given reason.
  explicit copied_result(stack_error why) noexcept : error_(why) {}
  /// A result with the value that `make` returns.
  template <class Make>
  copied_result(std::in_place_t, Make&& make) : value_(make_stored(std::forward<Make>(make))) {}

  /// Whether the coroutine was resumed.
  explicit operator bool() const noexcept { return value_.has_value(); }
  /// Returns the reason why it was not resumed, or `none`.
  [[nodiscard]] stack_error error() const noexcept { return error_; }
  /// Returns the value, which must exist. An object value can be moved from.
  [[nodiscard]] decltype(auto) value() noexcept {
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**value_);
    } else {
      return static_cast<T&>(*value_);
    }
  }

 private:
  template <class Make>
  static stored make_stored(Make&& make) {
    if constexpr (std::is_reference_v<T>) {
      auto&& made = make();
      return std::addressof(made);
    } else {
      return make();
    }
  }
  std::optional<stored> value_;
  stack_error error_ = stack_error::none;
};
/// Whether a resume without a value could be tried, or the reason why not.
template <>
class copied_result<void> {
 public:
  /// The result for the given reason, or `none`.
  explicit copied_result(stack_error why) noexcept : error_(why) {}
  /// Whether the coroutine was resumed.
  explicit operator bool() const noexcept { return error_ == stack_error::none; }
  /// Returns the reason why it was not resumed, or `none`.
  [[nodiscard]] stack_error error() const noexcept { return error_; }

 private:
  stack_error error_;
};

template <class Signature>
class copied_coroutine;

/// As coroutine<Out(In...)>, but on a copy_stack: resume sends In... and returns Out, from a yield or from the body's
/// return. A body is any callable `Out body(copied_coroutine<Out(In...)>::yield& yield, In... first)`.
///
/// Move-only, also while it is suspended. One thread at a time may use a copy_stack and the coroutines on it.
/// Destroying a suspended coroutine copies its frames in and unwinds them, on the calling thread. That is impossible if
/// a coroutine runs on the same stack or if the image of another one cannot be kept: then the program ends with a
/// message. To avoid that, call `reset` first, which throws in these cases. Destroying or moving a running coroutine
/// ends the program with a message.
template <class Out, class... In>
class copied_coroutine<Out(In...)> {
  static_assert(detail::values_move<Out, In...>, "values move from one side to the other");
  using outs = detail::none_or_one<Out>;
  using ins = void(In...);

 public:
  /// The first argument of a body, by which it suspends.
  using yield = detail::copied_yield<outs, ins>;

  /// Makes an empty coroutine, which counts as done.
  copied_coroutine() noexcept = default;
  /// Makes a coroutine suspended before its first statement. The body object waits in the buffer of the image, unless
  /// it is stateless. Throws std::system_error if there is no memory for it or `on` has an error, and any exception
  /// from moving the body.
  template <class Body>
    requires detail::coroutine_body<Body, yield&, In...>
  copied_coroutine(copy_stack& on, Body&& body) {
    construct(on, std::forward<Body>(body));
  }
  copied_coroutine(copied_coroutine&& other) noexcept = default;
  copied_coroutine& operator=(copied_coroutine&& other) noexcept {
    copied_coroutine taken(std::move(other));  // first, since the body that ends now may own it
    std::destroy_at(this);
    new (this) copied_coroutine(std::move(taken));
    return *this;
  }
  ~copied_coroutine() {
    if (!done()) [[unlikely]] {
      if (running()) {
        detail::destroyed_while_running();
      } else if (const stack_error error = clear(); error != stack_error::none) {
        detail::copied_refused(error);
      }
    }
  }

  /// Runs the coroutine until it yields or ends, and returns the value that it yielded or returned. Rethrows an
  /// exception that leaves the body, after which the coroutine is done. Throws std::logic_error if it is already done,
  /// empty or running, and std::system_error if it cannot be brought onto the stack (see try_resume), which leaves
  /// everything unchanged.
  PIRN_ALWAYS_INLINE Out resume(In... in) {
    const bool begins = context_.fresh();
    if (const stack_error error = bring_in(); error != stack_error::none) [[unlikely]] {
      detail::copied_failed(error, "pirn: copied_coroutine: resume");
    }
    return run(begins, in...);
  }
  /// As `resume`, but reports as a result why the coroutine cannot be brought onto the stack: no_image_memory if the
  /// coroutine resumed last there needs a larger buffer and there is no memory for it, stack_in_use if another
  /// coroutine is running there.
  PIRN_ALWAYS_INLINE copied_result<Out> try_resume(In... in) {
    const bool begins = context_.fresh();
    const stack_error error = bring_in();
    if (error != stack_error::none) [[unlikely]] {
      return copied_result<Out>(error);
    }
    if constexpr (std::is_void_v<Out>) {
      run(begins, in...);
      return copied_result<Out>(error);
    } else {
      return copied_result<Out>(std::in_place, [&]() -> Out { return run(begins, in...); });
    }
  }

  /// Returns whether there is nothing to resume: the body has ended, by return, exception or reset(), or there never
  /// was one.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool done() const noexcept { return context_.done(); }
  /// Returns whether the coroutine is running, or waiting for another one that it resumed.
  [[nodiscard]] bool running() const noexcept { return context_.running(); }
  /// Returns the statistics of the images that were copied out for it.
  [[nodiscard]] image_statistics statistics() const noexcept { return context_.statistics(); }
  /// Returns the size of its buffer in bytes.
  [[nodiscard]] std::size_t capacity() const noexcept { return context_.capacity(); }
  /// Prefetches the coroutine's data into the cache, for a coroutine that will be resumed soon, after others.
  PIRN_ALWAYS_INLINE void prefetch() const noexcept { context_.prefetch(); }

  /// Ends the body now, by unwinding it if it is suspended. Throws std::logic_error if it is running, and
  /// std::system_error as `resume` does.
  void reset() {
    if (running()) {
      detail::coroutine_misused("pirn: copied_coroutine: reset while it is running");
    }
    if (!done()) {
      if (const stack_error error = clear(); error != stack_error::none) {
        detail::copied_failed(error, "pirn: copied_coroutine: reset");
      }
    }
  }
  /// Ends the body as `reset()` does, then begins anew with another body on the same stack, with fresh statistics.
  /// Throws std::logic_error if the coroutine has no stack.
  template <class Body>
    requires detail::coroutine_body<Body, yield&, In...>
  void reset(Body&& body) {
    reset();
    if (context_.on() == nullptr) {
      detail::coroutine_misused("pirn: copied_coroutine: reset() called on a coroutine that has no stack");
    }
    construct(*context_.on(), std::forward<Body>(body));
  }

 private:
  template <class Body>
  void construct(copy_stack& on, Body&& body) {
    using stored = std::decay_t<Body>;
    using entry = detail::copied_entry<outs, ins, stored>;
    if (on.error() != stack_error::none) {
      detail::copied_failed(on.error(), "pirn: copied_coroutine");
    }
    copied_context fresh(on, &entry::enter);
    if constexpr (!entry::stateless) {
      using kept = detail::kept_body<stored>;
      if (!fresh.reserve(kept::size)) {
        detail::copied_failed(stack_error::no_image_memory, "pirn: copied_coroutine");
      }
      kept::make_in(fresh.buffer(), std::forward<Body>(body));
    }
    context_ = std::move(fresh);
  }

  /// Brings the coroutine onto the stack, or returns why that is impossible. Throws if it is done or running.
  PIRN_ALWAYS_INLINE stack_error bring_in() {
    if (done()) [[unlikely]] {
      detail::copied_not_resumable("resumed after its end, or empty");
    }
    const stack_error error = context_.bring_in();
    if (error == stack_error::stack_in_use && running()) [[unlikely]] {
      detail::copied_not_resumable("resumed while it is running");
    }
    return error;
  }

  PIRN_ALWAYS_INLINE Out run(bool begins, In&... in) {
    arch::word words[arch::value_words];
    [[maybe_unused]] arch::word spill[arch::value_words];
    typename detail::value_list<In...>::packed_args packed;
    packed.pack(words, in...);
    if (begins) [[unlikely]] {
      detail::pack_first_copied<In...>(context_, words, spill);
    }
    bool suspended;
    if (detail::maybe_in_flight()) [[unlikely]] {
      arch::word copies[arch::value_words] = {words[0], words[1], words[2], words[3]};  // the words may be in registers
      suspended = detail::run_in_flight(context_, copies);
      for (std::size_t i = 0; i < arch::value_words; ++i) {
        words[i] = copies[i];
      }
    } else {
      suspended = context_.run(words);
    }
    const settled when_taken{context_};
    if (!suspended) [[unlikely]] {
      if (words[0] != static_cast<arch::word>(detail::last_word::returned)) {
        detail::ended_otherwise(words[0], words[1]);
      }
      if constexpr (std::is_void_v<Out>) {
        return;
      } else {
        return detail::result_of<Out>::take(words);
      }
    }
    if constexpr (!std::is_void_v<Out>) {
      return detail::value_list<Out>::unpack(words,
                                             [](auto&& value) -> Out { return static_cast<decltype(value)>(value); });
    }
  }
  struct settled {
    copied_context& context;
    PIRN_ALWAYS_INLINE ~settled() { context.settle(); }
  };

  /// Ends a coroutine that has not ended and is not running.
  stack_error clear() noexcept {
    if (context_.fresh()) {
      if (auto* const kept = static_cast<detail::kept_body_base*>(context_.buffer()); kept != nullptr) {
        kept->destroy(kept);
      }
      context_.end();
      return stack_error::none;
    }
    const stack_error error = context_.bring_in();
    if (error == stack_error::none) {
      detail::cancel_copied(context_, [](arch::word(&words)[arch::value_words]) {
        if constexpr (!std::is_void_v<Out>) {
          static_cast<void>(detail::result_of<Out>::take(words));
        }
      });
    }
    return error;
  }

  copied_context context_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
