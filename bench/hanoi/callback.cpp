// A recursive function that calls the consumer through an opaque pointer.
#include "hanoi.hpp"

namespace {

using consumer = void (*)(bench::digest& moves, std::uint64_t move);

void produce(unsigned disks, unsigned from, unsigned to, unsigned spare, consumer consume, bench::digest& moves) {
  if (disks == 0) {
    return;
  }
  produce(disks - 1, from, spare, to, consume, moves);
  consume(moves, bench::move(disks, from, to));
  produce(disks - 1, spare, to, from, consume, moves);
}

}  // namespace

int main() {
  const consumer consume = bench::opaque(+[](bench::digest& moves, std::uint64_t move) { moves.take(move); });
  bench::hanoi_rows(
      "callback",
      [consume](unsigned disks) {
        bench::digest moves;
        produce(disks, 0, 1, 2, consume, moves);
        return moves;
      },
      "through a function pointer");
}
