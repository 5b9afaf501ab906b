// A generator on a pooled stack, whose body is an ordinary recursive function.
#include "pirn/coro/generator.hpp"

#include "hanoi.hpp"

namespace {

using generator = pirn::generator<std::uint64_t>;

PIRN_NONE void produce(generator::yield& yield, unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    return;
  }
  produce(yield, disks - 1, from, spare, to);
  yield(bench::move(disks, from, to));
  produce(yield, disks - 1, spare, to, from);
}

}  // namespace

int main() {
  bench::hanoi_rows("pirn", [](unsigned disks) {
    bench::digest moves;
    for (const std::uint64_t move : generator([disks](auto& yield) { produce(yield, disks, 0, 1, 2); })) {
      moves.take(move);
    }
    return moves;
  });
}
