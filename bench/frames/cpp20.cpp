// The least that a task of C++20 has to do, with frames from a pool: no scheduler, no exceptions.
#include <coroutine>
#include <exception>
#include <utility>

#include "../frame_pool.hpp"
#include "frames.hpp"

namespace {

class [[nodiscard]] task {
 public:
  struct promise_type : bench::frame_pool {
    std::coroutine_handle<> awaiting = std::noop_coroutine();
    std::uint64_t value = 0;

    task get_return_object() noexcept { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    static std::suspend_always initial_suspend() noexcept { return {}; }
    static auto final_suspend() noexcept {
      struct back {
        static bool await_ready() noexcept { return false; }
        static std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          return self.promise().awaiting;
        }
        static void await_resume() noexcept {}
      };
      return back{};
    }
    void return_value(std::uint64_t result) noexcept { value = result; }
    [[noreturn]] static void unhandled_exception() { std::terminate(); }
  };

  task(task&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
  task& operator=(task&&) = delete;
  ~task() {
    if (self_) {
      self_.destroy();
    }
  }

  static bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    self_.promise().awaiting = awaiting;
    return self_;
  }
  [[nodiscard]] std::uint64_t await_resume() const noexcept { return self_.promise().value; }
  std::uint64_t run() {
    self_.resume();
    return self_.promise().value;
  }

 private:
  explicit task(std::coroutine_handle<promise_type> self) noexcept : self_(self) {}
  std::coroutine_handle<promise_type> self_;
};

}  // namespace

int main() {
  bench::frames_rows<task>("cpp20", [](task what) { return what.run(); }, "pooled frames, no scheduler");
}
