// pirn's fibers on one worker, each on a guarded stack, that all wait in one queue.
#include <vector>

#include "../harness.hpp"
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
    all.push_back(pirn::spawn([&] {
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
  bench::row("million", "pirn", which + R"(memory"})", "B", held, "guarded stacks of 64 KiB");
  bench::row("million", "pirn", which + R"(create"})", "ns", created, "guarded stacks of 64 KiB");
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run(measure);
}
