// No library: the paper's form of a generator, in the consumer's stack. Unsafe: see ../in_stack.hpp.
#include "../in_stack.hpp"

#include "hanoi.hpp"

#if __has_cpp_attribute(clang::preserve_none)
#define PRESERVES_NONE [[clang::preserve_none]]
#else
#define PRESERVES_NONE
#endif

namespace {

PRESERVES_NONE void produce(bench::in_stack::yield& yield, unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    return;
  }
  produce(yield, disks - 1, from, spare, to);
  yield(bench::move(disks, from, to));
  produce(yield, disks - 1, spare, to, from);
}

[[gnu::noinline]] bench::digest solve(unsigned disks) {
  IN_STACK_ADDRESS_BY_FP();
  bench::digest moves;
  {
    auto body = [disks](auto& yield) { produce(yield, disks, 0, 1, 2); };
    bench::in_stack::generator<decltype(body)> all(body);
    for (; all; all.resume()) {
      moves.take(*all);
    }
  }
  return moves;
}

}  // namespace

int main() { bench::hanoi_rows("in-stack", solve, "no library: the paper's form, which is not safe"); }
