// pirn's fibers, all of which wait: the share of a core that the process uses while nothing happens.
#include <memory>
#include <string>
#include <vector>

#include "../harness.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"

int main() {
  const std::uint64_t workers = bench::input("WORKERS");
  const std::uint64_t fibers = bench::input("MILLION");
  bench::need_memory(fibers * 5000);
  // One of each worker, so that other workers need not count its fibers.
  struct share {
    pirn::wait_queue gate;
    pirn::platform::atomic<std::uint64_t> waiting{0};
    std::uint64_t ended = 0;
  };
  const std::unique_ptr<share[]> shares(new share[workers]);
  pirn::runtime runtime({.workers = static_cast<unsigned>(workers), .stack_size = bench::input("STACK")});
  std::vector<pirn::fiber> all;
  all.reserve(fibers);
  for (std::uint64_t i = 0; i < fibers; ++i) {
    all.push_back(runtime.spawn(
        [&mine = shares[i % workers]] {
          mine.gate.lock();
          mine.waiting.store(mine.waiting.load() + 1);
          static_cast<void>(mine.gate.wait({.what = "the gate"}));
          ++mine.ended;
        },
        {.worker = static_cast<int>(i % workers)}));
  }
  const auto waiting = [&] {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < workers; ++i) {
      sum += shares[i].waiting.load();
    }
    return sum;
  };
  const auto rest = [](auto how_long) { static_cast<void>(pirn::this_fiber::sleep_for(how_long)); };
  while (waiting() != fibers) {
    rest(std::chrono::milliseconds(1));
  }
  rest(std::chrono::milliseconds(100));  // the last searches for work have ended
  const double used = bench::now_ns();
  const double start = bench::wall_ns();
  rest(std::chrono::seconds(bench::input("IDLE_SECONDS")));
  const double share_of_core = (bench::now_ns() - used) / (bench::wall_ns() - start);
  std::uint64_t ended = 0;
  for (std::uint64_t i = 0; i < workers; ++i) {
    shares[i].gate.notify_all();
  }
  for (pirn::fiber& each : all) {
    each.join();
  }
  for (std::uint64_t i = 0; i < workers; ++i) {
    ended += shares[i].ended;
  }
  bench::check(ended == fibers, "every fiber is woken and ends");
  bench::row("idle", "pirn",
             R"({"workers":)" + std::to_string(workers) + R"(,"fibers":)" + std::to_string(fibers) + "}", "%",
             100 * share_of_core, "of a core, while all wait");
}
