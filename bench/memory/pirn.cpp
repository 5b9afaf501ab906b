// pirn's coroutines, each on a separate guarded stack of 64 KiB.
#include <cstring>

#include "memory.hpp"
#include "pirn/coro/coroutine.hpp"

namespace {

using coroutine = pirn::coroutine<void()>;

/// Uses 8 KiB of stack.
__attribute__((noinline)) void go_deep() {
  char bytes[8192];
  std::memset(bytes, 1, sizeof bytes);
  asm volatile("" : : "r"(bytes) : "memory");
}

/// A coroutine, its stack, and the lowest address in use while it is suspended.
struct unit {
  pirn::stack memory;
  const void* sp = nullptr;
  coroutine routine;
};

}  // namespace

int main() {
  const std::uint64_t units = bench::memory::units();
  bench::need_memory(units * (4700 + 8192 + sizeof(unit)));
  pirn::guarded_pool stacks;
  const bench::memory::meter meter;
  std::vector<unit> all(units);
  std::uint64_t turns = 0;
  for (unit& each : all) {
    const pirn::stack_result made = stacks.allocate(bench::input("STACK"));
    bench::check(static_cast<bool>(made), "there is a stack for each");
    each.memory = made.value;
    each.routine = coroutine(each.memory, [&](coroutine::yield& yield) {
      each.sp = __builtin_frame_address(0);
      ++turns;
      yield();
      go_deep();
      ++turns;
      yield();
    });
    each.routine.resume();
  }
  meter.row("pirn", "fresh", units, "guarded stacks of 64 KiB");
  for (unit& each : all) {
    each.routine.resume();
  }
  meter.row("pirn", "deep", units);
  for (const unit& each : all) {
    // Its frame extends below, by less than this.
    bench::check(trim(each.memory, static_cast<const char*>(each.sp) - 512), "memory is given back");
  }
  meter.row("pirn", "trimmed", units);
  for (unit& each : all) {
    each.routine.resume();
    each.routine = coroutine();
    stacks.deallocate(each.memory);
  }
  bench::check(turns == 2 * units, "every unit runs");
}
