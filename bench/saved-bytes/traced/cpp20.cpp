// C++20 coroutines: the frame is all that is kept, and its handle.
#include <coroutine>
#include <exception>

#include "traced.hpp"

namespace {

std::size_t frame_size = 0;

struct task {
  struct promise_type {
    static void* operator new(std::size_t size) {
      frame_size = size;
      return ::operator new(size);
    }
    static void operator delete(void* frame) { ::operator delete(frame); }
    task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

[[gnu::noinline]] task body(int times) {
  for (int i = 0; i < times; ++i) {
    co_await std::suspend_always{};
  }
}

std::coroutine_handle<> suspended;

}  // namespace

int main() {
  suspended = body(bench::opaque(5)).handle;
  const char* const frame = static_cast<char*>(suspended.address());
  for (int i = 0; i < 3; ++i) {
    suspended.resume();
    bench::suspended("co_await", {{frame, frame + frame_size}, {&suspended, &suspended + 1}});
  }
  bench::image_row("cpp20", "co_await", frame_size);
  suspended.destroy();
}
