// Two OS threads on one core hand control to each other through a futex.
#include "../harness.hpp"

#include <atomic>
#include <thread>

namespace {

std::atomic<int> turn{0};
std::atomic<bool> stopping{false};
std::uint64_t others = 0;

void hand_over(int to) {
  turn.store(to, std::memory_order_release);
  turn.notify_one();
  turn.wait(to, std::memory_order_acquire);
}

[[gnu::noinline]] void other() {
  turn.wait(0, std::memory_order_acquire);
  while (!stopping.load(std::memory_order_relaxed)) {
    ++others;
    hand_over(0);
  }
}

[[gnu::noinline]] void run(std::uint64_t n) {
  const std::uint64_t before = others;
  for (std::uint64_t i = 0; i < n / 2; ++i) {
    hand_over(1);
  }
  bench::check(others - before == n / 2, "every switch reaches the other thread");
}

}  // namespace

int main() {
  std::thread thread(other);
  bench::row("switch", "pthread", bench::param("contexts", 2), "ns", bench::ns_per_operation(run),
             "two OS threads, hand-over by futex");
  stopping = true;
  turn = 1;
  turn.notify_one();
  thread.join();
}
