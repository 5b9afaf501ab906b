// The million workload for pirn's fibers: all wait in one queue.
#pragma once

#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"

namespace bench {

/// Measures fibers that `spawn(body)` makes.
template <typename Spawn>
void million(Spawn spawn, const char* impl, const char* note) {
  const std::uint64_t fibers = input("MILLION");
  pirn::wait_queue gate;
  std::uint64_t waiting = 0;
  std::uint64_t ended = 0;
  std::vector<pirn::fiber> all;
  const std::uint64_t before = memory_bytes();
  const double start = now_ns();
  all.reserve(fibers);
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.push_back(spawn([&] {
      gate.lock();
      ++waiting;
      (void)gate.wait({.what = "the gate"});
      ++ended;
    }));
  }
  while (waiting < fibers) {
    pirn::this_fiber::yield();
  }
  const double created = (now_ns() - start) / static_cast<double>(fibers);
  const double held = static_cast<double>(memory_bytes() - before) / static_cast<double>(fibers);
  gate.notify_all();
  for (pirn::fiber& fiber : all) {
    fiber.join();
  }
  check(ended == fibers, "every fiber is woken and ends");
  const std::string which = R"({"fibers":)" + std::to_string(fibers) + R"(,"measure":")";
  row("million", impl, which + R"(memory"})", "B", held, note);
  row("million", impl, which + R"(create"})", "ns", created, note);
}

}  // namespace bench
