// C++20 coroutines that have waited once.
#include <coroutine>
#include <exception>

#include "memory.hpp"

namespace {

struct task {
  struct promise_type {
    task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

task wait(std::uint64_t& turns) {
  ++turns;
  co_await std::suspend_always{};
  ++turns;
}

}  // namespace

int main() {
  const std::uint64_t units = bench::memory::units();
  bench::need_memory(units * 100);
  const bench::memory::meter meter;
  std::vector<task> all;
  all.reserve(units);
  std::uint64_t turns = 0;
  for (std::uint64_t i = 0; i < units; ++i) {
    all.push_back(wait(turns));
  }
  meter.row("cpp20", "fresh", units, "stackless");
  for (const task& each : all) {
    each.handle.resume();
    each.handle.destroy();
  }
  bench::check(turns == 2 * units, "every unit runs");
}
