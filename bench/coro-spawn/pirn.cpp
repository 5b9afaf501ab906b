// pirn's coroutine on one guarded stack that is reused.
#include "coro_spawn.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

int main() {
  pirn::guarded_pool pool;
  const pirn::stack_result got = pool.allocate(bench::input("STACK"));
  bench::check(static_cast<bool>(got), "there is a stack");
  std::uint64_t ran = 0;
  bench::coro_spawn_row(
      "pirn", ran, [&, memory = got.value] { pirn::coroutine<void()>(memory, [&ran](auto&) { ++ran; }).resume(); },
      "on a reused stack");
  pool.deallocate(got.value);
}
