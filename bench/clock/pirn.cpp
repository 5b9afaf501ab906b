// The clock frequency, by additions that wait for each other, and the cost of loops that do nothing but count and
// clobber what a switch clobbers: the part of a switch's or yield's figure that is the loop around it.
#include "../empty_loop.hpp"
#include "../harness.hpp"

namespace {

// Register to register: some processors do an addition of a constant for nothing.
void add(std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; i += 10) {
    asm volatile(
        "addq %1, %0\n\taddq %1, %0\n\taddq %1, %0\n\taddq %1, %0\n\taddq %1, %0\n\t"
        "addq %1, %0\n\taddq %1, %0\n\taddq %1, %0\n\taddq %1, %0\n\taddq %1, %0"
        : "+r"(sum)
        : "r"(std::uint64_t{1})
        : "cc");
  }
  bench::check(sum == n, "every addition is done");
}

}  // namespace

int main() {
  bench::row("clock", "pirn", R"({"measure":"frequency"})", "cycles/s", 1e9 / bench::ns_per_operation(add));
  bench::row("clock", "pirn", R"({"measure":"empty-loop"})", "ns", bench::ns_per_operation(bench::empty_loop));
}
