// The clock frequency, measured by dependent additions, and the cost of loops that only count and clobber the registers
// that a switch clobbers: the loop's part of the figure of a switch or yield.
#include "../empty_loop.hpp"
#include "../harness.hpp"

namespace {

// Register to register: some processors add a constant in no time.
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
