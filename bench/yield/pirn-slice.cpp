// As pirn, in a runtime with time slices, and with a preemption point before each yield: what the two cost together.
#include <chrono>
#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

void run(std::uint64_t n) {
  const std::uint64_t fibers = bench::input("FIBERS");
  std::uint64_t yields = 0;
  std::vector<pirn::fiber> all;
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.push_back(pirn::spawn([each = n / fibers, &yields] {
      const std::uint64_t end = each;
      std::uint64_t k = 0;
      for (; k < end; ++k) {
        pirn::this_fiber::preemption_point();
        pirn::this_fiber::yield();
      }
      yields += k;
    }));
  }
  for (pirn::fiber& fiber : all) {
    fiber.join();
  }
  bench::check(yields == n, "every fiber yields as often as asked");
}

}  // namespace

int main() {
  const auto workers = static_cast<unsigned>(bench::input("WORKERS"));
  pirn::runtime runtime(
      {.workers = workers, .stack_size = bench::input("STACK"), .time_slice = std::chrono::milliseconds(2)});
  runtime.run([workers] {
    bench::row("yield", "pirn-slice", bench::with_workers(bench::param("fibers", bench::input("FIBERS")), workers),
               "ns", bench::ns_per_operation(run, bench::input("FIBERS"), bench::clock_for(workers)),
               "time slices of 2 ms, and a preemption point before each yield");
  });
}
