// The generator's body calls the consumer, which is inlined into it.
#include "pirn/coro/generator.hpp"

#include "hanoi.hpp"

namespace {

template <typename Yield>
void produce(Yield& yield, unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    return;
  }
  produce(yield, disks - 1, from, spare, to);
  yield(bench::move(disks, from, to));
  produce(yield, disks - 1, spare, to, from);
}

}  // namespace

int main() {
  bench::hanoi_rows("pirn-foreach", [](unsigned disks) {
    bench::digest moves;
    pirn::for_each<std::uint64_t>([disks](auto& yield) { produce(yield, disks, 0, 1, 2); },
                                  [&](std::uint64_t move) { moves.take(move); });
    return moves;
  });
}
