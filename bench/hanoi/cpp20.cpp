// Nested C++20 coroutines: each takes the elements of the one inside it and yields them again.
#include "../generator.hpp"
#include "hanoi.hpp"

namespace {

bench::generator<std::uint64_t> produce(unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    co_return;
  }
  for (auto moves = produce(disks - 1, from, spare, to); moves.next();) {
    co_yield moves.value();
  }
  co_yield bench::move(disks, from, to);
  for (auto moves = produce(disks - 1, spare, to, from); moves.next();) {
    co_yield moves.value();
  }
}

}  // namespace

int main() {
  bench::hanoi_rows(
      "cpp20",
      [](unsigned disks) {
        bench::digest moves;
        for (auto all = produce(disks, 0, 1, 2); all.next();) {
          moves.take(all.value());
        }
        return moves;
      },
      "a move is yielded again at every depth; frames pooled");
}
