// Recursive C++20 coroutines: the innermost one hands its element to the consumer directly, as with std::generator.
#include "../recursive_generator.hpp"
#include "hanoi.hpp"

namespace {

bench::recursive_generator<std::uint64_t> produce(unsigned disks, unsigned from, unsigned to, unsigned spare) {
  if (disks == 0) {
    co_return;
  }
  co_yield produce(disks - 1, from, spare, to);
  co_yield bench::move(disks, from, to);
  co_yield produce(disks - 1, spare, to, from);
}

}  // namespace

int main() {
  bench::hanoi_rows(
      "cpp20-transfer",
      [](unsigned disks) {
        bench::digest moves;
        for (auto all = produce(disks, 0, 1, 2); all.next();) {
          moves.take(all.value());
        }
        return moves;
      },
      "by symmetric transfer, as std::generator; frames pooled");
}
