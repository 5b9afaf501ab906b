// pirn's fibers, for workloads that are written once for all libraries of C++. Each library has a header like this one.
#pragma once

#include <vector>

#include "harness.hpp"
#include "pirn/fiber/runtime.hpp"

namespace bench {

struct units {
  static constexpr const char* name = "pirn";

  /// Runs `body` as a unit on the first of WORKERS.
  template <typename Body>
  static void run(Body body) {
    pirn::runtime runtime({.workers = static_cast<unsigned>(input("WORKERS")), .stack_size = input("STACK")});
    runtime.run(body);
  }

  /// Runs `body(i)` for each i below `count` in a unit of its own, on worker i modulo their number, until all have
  /// ended.
  template <typename Body>
  static void together(std::uint64_t count, Body body) {
    const std::uint64_t workers = input("WORKERS");
    std::vector<pirn::fiber> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      all.push_back(pirn::spawn([&body, i] { body(i); }, {.worker = static_cast<int>(i % workers)}));
    }
    for (pirn::fiber& each : all) {
      each.join();
    }
  }
};

}  // namespace bench
