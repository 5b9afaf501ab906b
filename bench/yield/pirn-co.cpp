// pirn's tasks, C++20 coroutines on one worker.
#include "pirn/fiber/co.hpp"

#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

pirn::task<> yields(std::uint64_t times, std::uint64_t& all) {
  std::uint64_t k = 0;
  for (; k < times; ++k) {
    co_await pirn::co::yield();
  }
  all += k;
}

void run(std::uint64_t n) {
  const std::uint64_t tasks = bench::input("FIBERS");
  std::uint64_t all = 0;
  std::vector<pirn::fiber> waiting;
  for (std::uint64_t i = 0; i < tasks; ++i) {
    waiting.push_back(pirn::spawn([each = n / tasks, &all] { pirn::await(yields(each, all)); }));
  }
  for (pirn::fiber& fiber : waiting) {
    fiber.join();
  }
  bench::check(all == n, "every task yields as often as asked");
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1, .calling_thread = true, .stack_size = bench::input("STACK")});
  runtime.run([] {
    bench::row("yield", "pirn-co", bench::param("fibers", bench::input("FIBERS")), "ns",
               bench::ns_per_operation(run, bench::input("FIBERS")), "co_await of pirn::co::yield()");
  });
}
