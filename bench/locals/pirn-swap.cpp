// A coroutine_local of a swapped task.
#include <cstdlib>
#include <utility>

#include "found.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/stack_swap.hpp"

namespace {

using variables = bench::found_variables<pirn::coroutine_local<std::uint64_t>>;

void measure(const variables& all) { all.measure("pirn-swap", "by the stack of a swapped task"); }

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
  const variables all;
  once policy;
  policy.task.assign<&measure>(all);
  pirn::stack_swap dispatcher(policy);
  bench::check(dispatcher.run() == pirn::swap_error::none, "the task runs");
}
