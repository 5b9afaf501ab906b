// The wake-latency workload: the time from the wake-up of a unit on another core until it runs. That core has been idle
// for a while, so its thread is asleep, if it sleeps at all.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "../harness.hpp"

namespace bench {

class wake_latency {
 public:
  std::uint64_t count() const { return took_.size(); }

  /// Called by the waker: `wake()` is called `count` times, each time long after the other unit has run and waits
  /// again.
  template <typename Wake>
  void wake_all(Wake wake) {
    for (std::uint64_t i = 0; i < count(); ++i) {
      const double rested = wall_ns() + rest_ns;
      while (wall_ns() < rested) {
      }
      woken_at_ = wall_ns();
      wake();
      while (runs_.load(std::memory_order_acquire) == i) {
      }
    }
  }
  /// Called by the woken unit, each time that it runs.
  void ran() {
    const std::uint64_t i = runs_.load(std::memory_order_relaxed);
    took_[i] = wall_ns() - woken_at_;
    runs_.store(i + 1, std::memory_order_release);
  }

  void rows(const char* impl, const char* note) {
    check(runs_ == count(), "every wake-up is answered once");
    std::sort(took_.begin(), took_.end());
    for (const auto& [name, share] : {std::pair{"50", 0.5}, {"99", 0.99}, {"99.9", 0.999}}) {
      const auto index = static_cast<std::size_t>(share * static_cast<double>(count()));
      row("wake-latency", impl, R"({"percentile":)" + std::string(name) + "}", "ns", took_[index], note);
    }
  }

 private:
  static constexpr double rest_ns = 60'000;
  std::vector<double> took_ = std::vector<double>(1000 * input("BLOCKS"));
  double woken_at_ = 0;
  std::atomic<std::uint64_t> runs_ = 0;
};

}  // namespace bench
