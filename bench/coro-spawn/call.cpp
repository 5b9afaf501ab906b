// A call of a function through a pointer: what a coroutine that never suspends is measured by.
#include "coro_spawn.hpp"

namespace {
std::uint64_t ran = 0;
__attribute__((noinline)) void body() { ++ran; }
}  // namespace

int main() {
  bench::coro_spawn_row("call", ran, [] { bench::opaque (&body)(); }, "a call through a pointer");
}
