// pirn's coroutine on a stack that comes from a pool's cache and returns to it.
#include "coro_spawn.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

int main() {
  pirn::guarded_pool pool;
  pirn::guarded_pool::cache stacks(pool, bench::input("STACK"));
  std::uint64_t ran = 0;
  bench::coro_spawn_row(
      "pirn-pooled", ran, [&] { pirn::coroutine<void()>(stacks, [&ran](auto&) { ++ran; }).resume(); },
      "stacks from a cache of a pool");
}
