// Boost.Fiber with its default round-robin scheduler.
#include "../harness.hpp"

#include <boost/fiber/all.hpp>

namespace {

void run(std::uint64_t n) {
  const std::uint64_t fibers = bench::input("FIBERS");
  std::uint64_t yields = 0;
  std::vector<boost::fibers::fiber> all;
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.emplace_back([each = n / fibers, &yields] {
      const std::uint64_t end = each;
      std::uint64_t k = 0;
      for (; k < end; ++k) {
        boost::this_fiber::yield();
      }
      yields += k;
    });
  }
  for (boost::fibers::fiber& fiber : all) {
    fiber.join();
  }
  bench::check(yields == n, "every fiber yields as often as asked");
}

}  // namespace

int main() {
  bench::row("yield", "boost-fiber", bench::param("fibers", bench::input("FIBERS")), "ns",
             bench::ns_per_operation(run, bench::input("FIBERS")));
}
