// OS threads on one core and sched_yield.
#include "../harness.hpp"

#include <sched.h>

#include <atomic>
#include <thread>

namespace {

void run(std::uint64_t n) {
  const std::uint64_t fibers = bench::input("FIBERS");
  std::atomic<std::uint64_t> yields{0};
  std::vector<std::thread> all;
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.emplace_back([each = n / fibers, &yields] {
      for (std::uint64_t k = 0; k < each; ++k) {
        sched_yield();
      }
      yields += each;
    });
  }
  for (std::thread& thread : all) {
    thread.join();
  }
  bench::check(yields == n, "every thread yields as often as asked");
}

}  // namespace

int main() {
  bench::row("yield", "pthread", bench::param("fibers", bench::input("FIBERS")), "ns",
             bench::ns_per_operation(run, bench::input("FIBERS")), "OS threads on one core, sched_yield");
}
