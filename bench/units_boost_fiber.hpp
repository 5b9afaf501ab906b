// Boost.Fiber with its default scheduler, which keeps a fiber on its thread; as units_pirn.hpp.
#pragma once

#include <boost/fiber/all.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "harness.hpp"

namespace bench {

struct units {
  static constexpr const char* name = "boost-fiber";
  static constexpr const char* note = "a thread for each worker";
  using mutex = boost::fibers::mutex;
  using condition = boost::fibers::condition_variable;

  static void yield() { boost::this_fiber::yield(); }

  template <typename Body>
  static void run(Body body) {
    body();
  }

  template <typename Body>
  static void together(std::uint64_t count, Body body) {
    const std::uint64_t workers = input("WORKERS");
    const auto work = [&](std::uint64_t worker) {
      boost::fibers::pooled_fixedsize_stack stacks(input("STACK"));
      std::vector<boost::fibers::fiber> all;
      for (std::uint64_t i = worker; i < count; i += workers) {
        all.emplace_back(std::allocator_arg, stacks, [&body, i] { body(i); });
      }
      for (boost::fibers::fiber& each : all) {
        each.join();
      }
    };
    std::vector<std::jthread> others;
    for (std::uint64_t worker = 1; worker < workers; ++worker) {
      others.emplace_back(work, worker);
    }
    work(0);
  }

  template <typename Other, typename Mine>
  static void both(Other other, Mine mine) {
    static boost::fibers::pooled_fixedsize_stack stacks(input("STACK"));
    boost::fibers::fiber unit(std::allocator_arg, stacks, other);
    mine();
    unit.join();
  }
};

}  // namespace bench
