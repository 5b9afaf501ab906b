// The yield workload for pirn's fibers, on one of the workers that the runtime has.
#pragma once

#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/runtime.hpp"

namespace bench {

/// Measures fibers that call `before()` before each yield.
template <typename Before>
void yields(const char* impl, pirn::runtime_options options, Before before, const char* note = nullptr) {
  const std::uint64_t workers = input("WORKERS");
  options.workers = static_cast<unsigned>(workers);
  options.stack_size = input("STACK");
  const auto run = [before](std::uint64_t n) {
    const std::uint64_t fibers = input("FIBERS");
    std::uint64_t yields = 0;
    std::vector<pirn::fiber> all;
    for (std::uint64_t i = 0; i < fibers; ++i) {
      all.push_back(pirn::spawn([each = n / fibers, &yields, before] {
        const std::uint64_t end = each;
        std::uint64_t k = 0;
        for (; k < end; ++k) {
          before();
          pirn::this_fiber::yield();
        }
        yields += k;
      }));
    }
    for (pirn::fiber& fiber : all) {
      fiber.join();
    }
    check(yields == n, "every fiber yields as often as asked");
  };
  pirn::runtime runtime(options);
  runtime.run([&] {
    row("yield", impl, with_workers(param("fibers", input("FIBERS")), workers), "ns",
        ns_per_operation(run, input("FIBERS"), clock_for(workers)), note);
  });
}

}  // namespace bench
