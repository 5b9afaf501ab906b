// Two OS threads of which one watches a word that the other writes: how long the cores take to tell each other.
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
