// The cost of letting another fiber, or another OS thread, run.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "pirn/fiber/runtime.hpp"

namespace tour {

inline double nanoseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns the minimum of several tries: other work of the machine can only add to it.
template <class Measure>
double min_of(Measure measure) {
  double least = measure();
  for (int i = 0; i < 4; ++i) {
    least = std::min(least, measure());
  }
  return least;
}

/// Returns the cost of a yield among ten fibers that take turns.
inline double fiber_yield_cost() {
  constexpr int fibers = 10;
  constexpr int turns = 100'000;
  pirn::runtime runtime({.workers = 1});
  return runtime.run([] {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<pirn::fiber> all;
    all.reserve(fibers);
    for (int i = 0; i < fibers; ++i) {
      all.push_back(pirn::spawn([] {
        for (int turn = 0; turn < turns; ++turn) {
          pirn::this_fiber::yield();
        }
      }));
    }
    for (pirn::fiber& one : all) {
      one.join();
    }
    return nanoseconds_since(begin) / (double{fibers} * turns);
  });
}

/// Returns the cost of a yield between two OS threads that take turns on one CPU.
inline double thread_yield_cost() {
  constexpr int turns = 20'000;
  cpu_set_t one_cpu;
  CPU_ZERO(&one_cpu);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one_cpu);
  std::atomic<int> ready{0};
  const auto body = [&] {
    ::pthread_setaffinity_np(::pthread_self(), sizeof one_cpu, &one_cpu);
    ++ready;
    while (ready < 2) {
      ::sched_yield();
    }
    for (int turn = 0; turn < turns; ++turn) {
      ::sched_yield();
    }
  };
  std::thread other(body);
  std::thread another(body);
  const auto begin = std::chrono::steady_clock::now();
  other.join();
  another.join();
  return nanoseconds_since(begin) / (2.0 * turns);
}

}  // namespace tour
