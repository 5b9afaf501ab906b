// Fibers that have been deep and wait: the memory that they hold before and after their stacks are trimmed, and the
// cost of that for their workers.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"

namespace trim_bench {

constexpr std::size_t depth = 8192;

__attribute__((noinline)) inline void go_deep() {
  char bytes[depth];
  std::memset(bytes, 1, sizeof bytes);
  asm volatile("" : : "r"(bytes) : "memory");
}

/// The fibers of one worker.
struct share {
  pirn::wait_queue gate;
  pirn::platform::atomic<std::uint64_t> waiting{0};
  std::uint64_t intact = 0;
};

inline void wait_until(auto reached) {
  while (!reached()) {
    pirn::platform::yield_thread();
  }
}

/// Threads that compute meanwhile, as those of a program do: each of them that runs when a stack is trimmed is told.
class busy_threads {
 public:
  explicit busy_threads(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (!ended_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  busy_threads(const busy_threads&) = delete;
  busy_threads& operator=(const busy_threads&) = delete;
  ~busy_threads() {
    ended_.store(true);
    for (std::thread& each : threads_) {
      each.join();
    }
  }

  /// Returns the CPU time that they have used, in ns.
  [[nodiscard]] double used() {
    double sum = 0;
    for (std::thread& each : threads_) {
      clockid_t clock{};
      timespec now{};
      bench::check(pthread_getcpuclockid(each.native_handle(), &clock) == 0 && clock_gettime(clock, &now) == 0,
                   "a thread has a clock");
      sum += static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
    }
    return sum;
  }

 private:
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

/// The rows of fibers that wait in `in_body(what)`, which calls `what()` in a body or itself.
void run(const char* impl, auto in_body) {
  const std::uint64_t workers = bench::input("WORKERS");
  const std::uint64_t busy = bench::input("BUSY");
  const std::uint64_t fibers = bench::input("MILLION") / workers * workers;
  bench::need_memory(fibers * (10000 + 2 * depth));
  const std::unique_ptr<share[]> shares(new share[workers]);
  pirn::runtime runtime({.workers = static_cast<unsigned>(workers), .stack_size = bench::input("STACK")});
  const auto sum = [&](auto of) {
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < workers; ++i) {
      all += of(i);
    }
    return all;
  };
  const auto waiting = [&] { return sum([&](std::uint64_t i) { return shares[i].waiting.load(); }); };
  const auto trimmed = [&] { return sum([&](std::uint64_t i) { return runtime.statistics(i).trimmed; }); };
  std::vector<pirn::fiber> all;
  all.reserve(fibers);
  const std::uint64_t before = bench::memory_bytes();
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.push_back(runtime.spawn(
        [&mine = shares[i % workers], i, in_body] {
          in_body([&] {
            for (int round = 0; round < 2; ++round) {
              const std::uint64_t kept = bench::opaque(i);
              go_deep();
              mine.gate.lock();
              mine.waiting.store(mine.waiting.load() + 1);
              static_cast<void>(mine.gate.wait({.what = "the gate"}));
              mine.intact += kept == i ? 1 : 0;
            }
          });
        },
        {.worker = static_cast<int>(i % workers)}));
  }
  wait_until([&] { return waiting() == fibers; });
  const auto number = static_cast<double>(fibers);
  const auto row = [&](const char* measure, const char* unit, double value, const char* note) {
    bench::row("trim", impl,
               R"({"workers":)" + std::to_string(workers) + R"(,"fibers":)" + std::to_string(fibers) +
                   (busy != 0 ? R"(,"busy":)" + std::to_string(busy) : "") + R"(,"measure":")" + measure + "\"}",
               unit, value, note);
  };
  const auto held = [&] { return static_cast<double>(bench::memory_bytes() - before) / number; };
  row("before", "B", held(), "fibers that wait after 8 KiB of stack were in use");
  {
    busy_threads beside(busy);
    const double start = bench::now_ns() - beside.used();
    runtime.trim();
    while (trimmed() != fibers) {
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::milliseconds(1)));
    }
    row("trim", "ns", (bench::now_ns() - beside.used() - start) / number, "CPU time of all workers for each");
  }
  row("after", "B", held(), "their stacks trimmed");
  const double start = bench::now_ns();
  for (std::uint64_t i = 0; i < workers; ++i) {
    shares[i].gate.notify_all();
  }
  wait_until([&] { return waiting() == 2 * fibers; });
  row("again", "ns", (bench::now_ns() - start) / number, "CPU time for each to be as deep once more, with page faults");
  for (std::uint64_t i = 0; i < workers; ++i) {
    shares[i].gate.notify_all();
  }
  for (pirn::fiber& each : all) {
    each.join();
  }
  bench::check(sum([&](std::uint64_t i) { return shares[i].intact; }) == 2 * fibers, "every frame is left as it was");
}

}  // namespace trim_bench
