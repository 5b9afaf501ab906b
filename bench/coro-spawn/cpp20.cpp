// A C++20 coroutine that is not inlined where it is created, so that it has a frame, from a pool.
#include "../generator.hpp"
#include "coro_spawn.hpp"

namespace {

[[gnu::noinline]] bench::generator<int> body(std::uint64_t& ran) {
  ++ran;
  co_return;
}

}  // namespace

int main() {
  std::uint64_t ran = 0;
  bench::coro_spawn_row("cpp20", ran, [&ran] { body(ran).next(); }, "frame pooled, body not inlined");
}
