// The C API, to show its cost over the C++ form, pirn. One stack, reused.
#include "coro_spawn.hpp"
#include "pirn/pirn.h"

namespace {

std::uint64_t ran = 0;

void* body(pirn_coroutine* /*self*/, void* first) {
  ++ran;
  return first;
}

}  // namespace

int main() {
  pirn_stack* stack = nullptr;
  bench::check(pirn_stack_create(&stack, bench::input("STACK")) == 0, "a stack");
  bench::coro_spawn_row("pirn-c", ran, [stack] {
    pirn_coroutine* one = nullptr;
    pirn_create(&one, stack, body, nullptr);
    pirn_resume(one, nullptr, nullptr);
    pirn_destroy(one);
  });
  pirn_stack_destroy(stack);
}
