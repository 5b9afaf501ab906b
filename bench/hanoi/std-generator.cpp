// std::generator, where the standard library has it: what it hands over from inside a recursion goes straight to the
// consumer.
#include <generator>
#include <ranges>

#include "hanoi.hpp"

namespace {

std::generator<std::uint64_t> produce(unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    co_return;
  }
  co_yield std::ranges::elements_of(produce(disks - 1, from, spare, to));
  co_yield bench::move(disks, from, to);
  co_yield std::ranges::elements_of(produce(disks - 1, spare, to, from));
}

}  // namespace

int main() {
  bench::hanoi_rows("std-generator", [](unsigned disks) {
    bench::digest moves;
    for (const std::uint64_t move : produce(disks, 0, 1, 2)) {
      moves.take(move);
    }
    return moves;
  });
}
