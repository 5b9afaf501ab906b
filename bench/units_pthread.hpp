// OS threads, on as many cores as there are workers; as units_pirn.hpp. The threads of the standard library are
// pthreads here.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "harness.hpp"

namespace bench {

struct units {
  static constexpr const char* name = "pthread";
  static constexpr const char* note = "OS threads";
  using mutex = std::mutex;
  using condition = std::condition_variable;

  static void yield() { std::this_thread::yield(); }

  template <typename Body>
  static void run(Body body) {
    body();
  }

  template <typename Body>
  static void together(std::uint64_t count, Body body) {
    std::vector<std::jthread> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      all.emplace_back([&body, i] { body(i); });
    }
  }

  template <typename Other, typename Mine>
  static void both(Other other, Mine mine) {
    const std::jthread unit(other);
    mine();
  }
};

}  // namespace bench
