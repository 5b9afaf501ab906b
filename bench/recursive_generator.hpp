// A generator of C++20 that can yield all elements of another one in constant time at any depth, as C++23's
// std::generator does: the innermost generator runs, and at its end returns by symmetric transfer to the outer one that
// yielded it.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "frame_pool.hpp"

namespace bench {

template <typename T>
class recursive_generator {
 public:
  struct promise_type;

 private:
  using handle = std::coroutine_handle<promise_type>;

  /// Continues the surrounding generator at the end of an inner one, or returns to the consumer.
  struct leave {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(handle ended) noexcept {
      promise_type& promise = ended.promise();
      if (!promise.outer) {
        return std::noop_coroutine();
      }
      promise.outermost->innermost = promise.outer;
      return promise.outer;
    }
    void await_resume() noexcept {}
  };

  /// Continues with an inner generator.
  struct enter {
    recursive_generator inner;

    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(handle outer) noexcept {
      promise_type& promise = inner.coroutine_.promise();
      promise.outer = outer;
      promise.outermost = outer.promise().outermost;
      promise.outermost->innermost = inner.coroutine_;
      return inner.coroutine_;
    }
    void await_resume() noexcept {}
  };

 public:
  struct promise_type : frame_pool {
    promise_type* outermost = this;
    handle outer;
    handle innermost = handle::from_promise(*this);  // used in the outermost generator
    T element{};                                     // used in the outermost generator

    recursive_generator get_return_object() { return recursive_generator(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    leave final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(T value) noexcept {
      outermost->element = value;
      return {};
    }
    /// Yields all elements of a generator.
    enter yield_value(recursive_generator&& inner) noexcept { return {std::move(inner)}; }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };

  recursive_generator(recursive_generator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  recursive_generator& operator=(recursive_generator&&) = delete;
  ~recursive_generator() {
    if (coroutine_) {
      coroutine_.destroy();
    }
  }

  /// Runs up to the next element. Returns false after the last one.
  bool next() {
    coroutine_.promise().innermost.resume();
    return !coroutine_.done();
  }
  T value() const { return coroutine_.promise().element; }

 private:
  explicit recursive_generator(handle coroutine) : coroutine_(coroutine) {}

  handle coroutine_;
};

}  // namespace bench
