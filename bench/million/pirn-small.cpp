// As pirn.cpp, on stacks of 2 KiB without a guard, which are checked at each suspension.
#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/expert/small.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

void measure() {
  const std::uint64_t fibers = bench::input("MILLION");
  pirn::wait_queue gate;
  std::uint64_t waiting = 0;
  std::uint64_t ended = 0;
  std::vector<pirn::fiber> all;
  const std::uint64_t before = bench::memory_bytes();
  const double start = bench::now_ns();
  all.reserve(fibers);
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.push_back(pirn::spawn_small([&] {
      gate.lock();
      ++waiting;
      (void)gate.wait({.what = "the gate"});
      ++ended;
    }));
  }
  while (waiting < fibers) {
    pirn::this_fiber::yield();
  }
  const double created = (bench::now_ns() - start) / static_cast<double>(fibers);
  const double held = static_cast<double>(bench::memory_bytes() - before) / static_cast<double>(fibers);
  gate.notify_all();
  for (pirn::fiber& fiber : all) {
    fiber.join();
  }
  bench::check(ended == fibers, "every fiber is woken and ends");
  const std::string which = R"({"fibers":)" + std::to_string(fibers) + R"(,"measure":")";
  bench::row("million", "pirn-small", which + R"(memory"})", "B", held, "checked stacks of 2 KiB");
  bench::row("million", "pirn-small", which + R"(create"})", "ns", created, "checked stacks of 2 KiB");
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1});
  runtime.run(measure);
}
