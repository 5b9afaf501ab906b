// Two OS threads, one of which watches a word that the other writes: the latency between the cores alone.
#include <thread>

#include "wake_latency.hpp"

int main() {
  bench::wake_latency latency;
  alignas(64) std::atomic<std::uint64_t> word = 0;
  {
    const std::jthread watches([&] {
      for (std::uint64_t i = 0; i < latency.count(); ++i) {
        while (word.load(std::memory_order_acquire) == i) {
        }
        latency.ran();
      }
    });
    latency.wake_all([&] { word.fetch_add(1, std::memory_order_release); });
  }
  latency.rows("bare", "a word that the other core watches, and two looks at the clock");
}
