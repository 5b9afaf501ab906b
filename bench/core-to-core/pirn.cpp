// Two fibers of one worker that hand each other a number: a yield is the message.
#include "../harness.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

void run(std::uint64_t messages) {
  const std::uint64_t rounds = messages / 2;
  std::uint64_t there = 0;
  std::uint64_t back = 0;
  pirn::fiber other = pirn::spawn([&, rounds] {
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      while (there != i) {
        pirn::this_fiber::yield();
      }
      back = i;
      pirn::this_fiber::yield();
    }
  });
  std::uint64_t i = 1;
  for (; i <= rounds; ++i) {
    there = i;
    while (back != i) {
      pirn::this_fiber::yield();
    }
  }
  other.join();
  bench::check(i == rounds + 1, "every number comes back");
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1, .calling_thread = true, .stack_size = bench::input("STACK")});
  runtime.run([] {
    bench::row("core-to-core", "pirn", "{}", "ns", bench::ns_per_operation(run, 2, bench::wall_ns),
               "two fibers of one worker, a yield for each number");
  });
}
