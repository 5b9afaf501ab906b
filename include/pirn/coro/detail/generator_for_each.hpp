// The driver that never suspends: the body calls the consumer. Included by generator.hpp.
#pragma once

#include <concepts>
#include <cstdlib>
#include <exception>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/coro/detail/elements_of.hpp"
#include "pirn/coro/expert/generator_element.hpp"
#include "pirn/detail/contract.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Thrown through a body whose consumer wants no more elements. Not a std::exception, so only `catch (...)` sees it; a
/// body that swallows it gets it again at its next yield.
class generator_stopped {
 public:
  [[noreturn]] PIRN_COLD static void raise() {
    static const bool once = [] {
      earlier_terminate_ = std::get_terminate();
      std::set_terminate(&terminating);
      return true;
    }();
    static_cast<void>(once);
    throw generator_stopped{};
  }

 private:
  // It is impossible to test beforehand whether a frame in between is noexcept: clang's tables do not say so.
  static void terminating() noexcept {
    try {
      if (std::current_exception() != nullptr) {
        throw;
      }
    } catch (const generator_stopped&) {
      fail_contract(
          "for_each: its consumer has stopped or thrown, and the body cannot be left by an exception: it yields under "
          "noexcept, in a destructor for example. Everything that may yield must be able to throw: noexcept(false)");
    } catch (...) {  // NOLINT(bugprone-empty-catch): not ours
    }
    if (earlier_terminate_ != nullptr) {
      earlier_terminate_();
    }
    std::abort();
  }

  static inline std::terminate_handler earlier_terminate_ = nullptr;
};

/// Not any type that converts to bool: a lambda of one expression returns whatever type that has.
template <class Consumer, class Element>
inline constexpr bool consumer_decides = std::is_same_v<std::invoke_result_t<Consumer&, Element>, bool>;

/// The yield object of for_each.
template <class T, class Consumer>
class inline_yield {
  using element = generator_element<T>;
  using reference = typename element::reference;
  static constexpr bool decides = consumer_decides<Consumer, reference>;
  static constexpr bool throws = !std::is_nothrow_invocable_v<Consumer&, reference>;

 public:
  using value_type = typename element::value_type;

  PIRN_ALWAYS_INLINE explicit inline_yield(Consumer& consumer) noexcept : consumer_(consumer) {}
  inline_yield(const inline_yield&) = delete;
  inline_yield& operator=(const inline_yield&) = delete;

  PIRN_ALWAYS_INLINE void operator()(value_type value)
    requires(element::by_value)
  {
    give(value);
  }
  PIRN_ALWAYS_INLINE void operator()(T&& value)
    requires(!element::by_value)
  {
    give(static_cast<T&&>(value));
  }
  PIRN_ALWAYS_INLINE void operator()(const value_type& value)
    requires(!std::is_lvalue_reference_v<T> && !element::by_value && std::copy_constructible<value_type>)
  {
    value_type copy(value);
    give(std::move(copy));
  }
  template <std::ranges::input_range Range>
  PIRN_ALWAYS_INLINE void operator()(elements_of<Range> all) {
    for (auto&& value : all.range) {
      (*this)(static_cast<decltype(value)>(value));
    }
  }

  /// Returns whether the consumer has stopped, by returning false or by an exception.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool stops() const noexcept { return stopped_; }
  /// As `stops`, but first rethrows the consumer's exception.
  PIRN_ALWAYS_INLINE bool stopped() {
    if constexpr (throws) {
      if (exception_) [[unlikely]] {
        std::rethrow_exception(std::exchange(exception_, nullptr));
      }
    }
    return stopped_;
  }

 private:
  template <class Value>
  PIRN_ALWAYS_INLINE void give(Value&& value) {
    if (stopped_) [[unlikely]] {
      generator_stopped::raise();
    }
    bool more = true;
    if constexpr (throws) {
      // The body must not catch an exception of the consumer: with the other drivers it never passes through the body.
      try {
        more = call(std::forward<Value>(value));
      } catch (...) {
        exception_ = std::current_exception();
        if (exception_ == nullptr) {
          throw;  // an unwind, of the thread or of a context suspended here
        }
        more = false;
      }
    } else {
      more = call(std::forward<Value>(value));
    }
    if (!more) [[unlikely]] {
      stopped_ = true;
      generator_stopped::raise();
    }
  }
  template <class Value>
  PIRN_ALWAYS_INLINE bool call(Value&& value) {
    if constexpr (decides) {
      return consumer_(static_cast<reference>(value));
    } else {
      static_cast<void>(consumer_(static_cast<reference>(value)));
      return true;
    }
  }

  Consumer& consumer_;
  bool stopped_ = false;
  std::exception_ptr exception_{};
};

}  // namespace detail

/// Calls `consumer` with each element that `body` yields. It does the work of `for (T element : generator<T>(body))
/// consumer(element)`, but in one loop on this stack: body and consumer are inlined where the compiler sees them, and
/// vectorised where a plain loop would be. A consumer that returns bool stops by returning false, which costs an
/// exception, about a microsecond; results of other types are ignored. An exception of the consumer bypasses the body,
/// and is rethrown regardless of the body's reaction. Returns false if the consumer stopped. `body` must take its yield
/// object as `auto&`; one that takes generator<T>::yield& runs as a generator does.
template <class T, class Body, class Consumer>
PIRN_ALWAYS_INLINE bool for_each(Body&& body, Consumer&& consumer) {
  using yield = detail::inline_yield<T, std::remove_reference_t<Consumer>>;
  if constexpr (std::invocable<Body&, yield&>) {
    yield out(consumer);
    try {
      static_cast<void>(body(out));
    } catch (...) {
      // The stop, or the body's reaction to it, which the other drivers drop too. An unwind from outside continues.
      if (!out.stops() || std::current_exception() == nullptr) {
        throw;
      }
    }
    return !out.stopped();
  } else {
    generator<T> elements(std::forward<Body>(body));
    for (auto&& element : elements) {
      if constexpr (detail::consumer_decides<Consumer, decltype(element)>) {
        if (!consumer(static_cast<decltype(element)>(element))) {
          return false;
        }
      } else {
        static_cast<void>(consumer(static_cast<decltype(element)>(element)));
      }
    }
    return true;
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
