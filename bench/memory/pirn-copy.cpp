// pirn's coroutines on one copy_stack, each with an image of the necessary size.
#include "memory.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"

int main() {
  using coroutine = pirn::copied_coroutine<void()>;
  const std::uint64_t units = bench::memory::units();
  bench::need_memory(units * 150);
  const bench::memory::meter meter;
  pirn::copy_stack stack(bench::input("STACK"));
  std::vector<coroutine> all(units);
  std::uint64_t turns = 0;
  for (coroutine& each : all) {
    each = coroutine(stack, [&turns](coroutine::yield& yield) PIRN_NONE {
      ++turns;
      yield();
      ++turns;
    });
    each.resume();
  }
  meter.row("pirn-copy", "fresh", units, "images of the size that is needed");
  for (coroutine& each : all) {
    each.resume();
  }
  bench::check(turns == 2 * units, "every unit runs");
}
