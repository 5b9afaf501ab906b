// A coroutine_local of a swapped task.
#include <cstdlib>
#include <deque>
#include <utility>

#include "locals.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/stack_swap.hpp"

namespace {

std::deque<pirn::coroutine_local<std::uint64_t>> variables;
[[gnu::noinline]] void add(std::uint64_t which) { ++variables[which].get(); }

void measure(int& /*unused*/) {
  bench::locals_row(
      "pirn-swap", add, [](std::uint64_t which) { return variables[which].get(); }, "by the stack of a swapped task");
}

/// Has one task.
struct once {
  pirn::swapped_task task;
  bool given = false;
  pirn::swapped_task* next() noexcept { return std::exchange(given, true) ? nullptr : &task; }
  void* allocate(std::size_t size) noexcept { return std::malloc(size); }
  void free(void* buffer, std::size_t /*size*/) noexcept { std::free(buffer); }
};

}  // namespace

int main() {
  for (std::uint64_t i = 0; i < bench::input("VARIABLES"); ++i) {
    variables.emplace_back();
  }
  once policy;
  int unused = 0;
  policy.task.assign<&measure>(unused);
  pirn::stack_swap dispatcher(policy);
  bench::check(dispatcher.run() == pirn::swap_error::none, "the task runs");
}
