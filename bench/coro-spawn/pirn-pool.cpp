// A job of a coroutine_pool: its coroutine waits in a loop for the next one.
#include "coro_spawn.hpp"
#include "pirn/coro/coroutine_pool.hpp"

int main() {
  pirn::guarded_pool stacks;
  pirn::coroutine_pool jobs(stacks, bench::input("STACK"));
  std::uint64_t ran = 0;
  bench::coro_spawn_row(
      "pirn-pool", ran, [&] { jobs.start([&ran](auto&) { ++ran; }); }, "a job on a coroutine that waits for one");
}
