// A C++20 generator with only the parts that a rival needs: the element lies in the promise.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "frame_pool.hpp"

namespace bench {

template <typename T>
class generator {
 public:
  struct promise_type : frame_pool {
    T element;

    generator get_return_object() { return generator(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(T value) noexcept {
      element = value;
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };

  generator(generator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  generator& operator=(generator&&) = delete;
  ~generator() {
    if (coroutine_) {
      coroutine_.destroy();
    }
  }

  /// Runs up to the next element. Returns false after the last one.
  bool next() {
    coroutine_.resume();
    return !coroutine_.done();
  }
  T value() const { return coroutine_.promise().element; }

 private:
  using handle = std::coroutine_handle<promise_type>;
  explicit generator(handle coroutine) : coroutine_(coroutine) {}

  handle coroutine_;
};

}  // namespace bench
