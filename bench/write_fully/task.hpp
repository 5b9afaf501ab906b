// C++20 coroutines for write_fully: frames in their awaiter's frame or from a pool, and a round-robin queue of ready
// coroutines.
#pragma once

#include <array>
#include <coroutine>
#include <exception>
#include <utility>

#include "../frame_pool.hpp"
#include "write_fully.hpp"

namespace bench {

/// The ready coroutines, first in, first out.
class ready_queue {
 public:
  static constexpr std::size_t capacity = 64;
  void push(std::coroutine_handle<> one) { items_[last_++ % capacity] = one; }
  std::coroutine_handle<> pop() { return items_[first_++ % capacity]; }
  [[nodiscard]] bool empty() const { return first_ == last_; }

 private:
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  std::array<std::coroutine_handle<>, capacity> items_;
};
inline ready_queue queue;
/// Whether a wait returns at once.
inline bool ready = false;

/// When a coroutine begins to run.
enum class start : std::uint8_t {
  lazily,       ///< when it is awaited: control goes straight to it
  immediately,  ///< when it is called: an awaiter suspends only if it has not ended by then
  scheduled,    ///< when the queue comes to it, as its awaiter does after its end: each goes through the scheduler
};

// Puts the frame of a coroutine that is awaited at once into the frame of its awaiter.
#if __has_cpp_attribute(clang::coro_await_elidable) && !defined(BENCH_FRAMES_FROM_MALLOC)
#define BENCH_FRAME_IN_FRAME clang::coro_await_elidable
#else
#define BENCH_FRAME_IN_FRAME
#endif

/// A coroutine that sends, and returns how many bytes. Its awaiter resumes directly from its end.
template <start When>
class [[nodiscard, BENCH_FRAME_IN_FRAME]] task {
 public:
  struct promise_type : frame_pool {
    std::coroutine_handle<> awaiting = std::noop_coroutine();
    std::size_t value = 0;

    task get_return_object() noexcept { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    static auto initial_suspend() noexcept {
      if constexpr (When == start::immediately) {
        return std::suspend_never{};
      } else {
        return std::suspend_always{};
      }
    }
    static auto final_suspend() noexcept {
      struct back {
        static bool await_ready() noexcept { return false; }
        static std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          const std::coroutine_handle<> awaiting = self.promise().awaiting;
          if constexpr (When == start::scheduled) {
            if (awaiting != std::noop_coroutine()) {
              queue.push(awaiting);
            }
            return std::noop_coroutine();
          }
          return awaiting;
        }
        static void await_resume() noexcept {}
      };
      return back{};
    }
    void return_value(std::size_t sent) noexcept { value = sent; }
    [[noreturn]] static void unhandled_exception() { std::terminate(); }
  };

  task(task&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
  task& operator=(task&&) = delete;
  ~task() {
    if (self_) {
      self_.destroy();
    }
  }

  [[nodiscard]] bool await_ready() const noexcept { return When == start::immediately && self_.done(); }
  auto await_suspend(std::coroutine_handle<> awaiting) noexcept {
    self_.promise().awaiting = awaiting;
    if constexpr (When == start::lazily) {
      return std::coroutine_handle<>(self_);
    } else if constexpr (When == start::scheduled) {
      queue.push(self_);
    }
  }
  [[nodiscard]] std::size_t await_resume() const noexcept { return self_.promise().value; }

  [[nodiscard]] std::coroutine_handle<> handle() const noexcept { return self_; }
  [[nodiscard]] std::size_t result() const noexcept { return self_.promise().value; }

 private:
  explicit task(std::coroutine_handle<promise_type> self) noexcept : self_(self) {}
  std::coroutine_handle<promise_type> self_;
};

/// The readiness wait: the coroutine queues behind all ready ones. A coroutine that runs because it was called must
/// then return to its caller, one that runs because it was scheduled to the scheduler; else the first ready one runs at
/// once.
template <start When>
struct wait_for_ready {
  static bool await_ready() noexcept { return ready; }
  static auto await_suspend(std::coroutine_handle<> self) noexcept {
    queue.push(self);
    if constexpr (When == start::lazily) {
      return queue.pop();
    }
  }
  static void await_resume() noexcept {}
};

template <start When>
task<When> send_some(sink& to, const std::byte* data, std::size_t size) {
  co_await wait_for_ready<When>{};
  co_return offer(to, data, size);
}

template <start When>
task<When> write_fully(sink& to, const std::byte* data, std::size_t size) {
  std::size_t sent = 0;
  while (sent < size) {
    sent += co_await send_some<When>(to, data + sent, size - sent);
  }
  co_return sent;
}

template <start When>
task<When> sender(sink& to, const payload& whole) {
  co_await wait_for_ready<When>{};
  co_return co_await write_fully<When>(to, whole.data(), whole.size());
}

template <start When>
void send_all(std::vector<sink>& sinks, const payload& whole) {
  check(sinks.size() <= ready_queue::capacity, "the queue has room for all senders");
  std::vector<task<When>> senders;
  for (sink& to : sinks) {
    senders.push_back(sender<When>(to, whole));
    if (When != start::immediately) {
      queue.push(senders.back().handle());
    }
  }
  while (!queue.empty()) {
    queue.pop().resume();
  }
  for (const task<When>& one : senders) {
    check(one.result() == whole.size(), "the sum of the steps is right");
  }
}

}  // namespace bench
