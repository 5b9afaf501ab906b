// Requests of a closed loop: how many there are in a second of CPU time and on the clock, and how long they take. The
// programs that print these figures have the same rows for the same things.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// Returns the time of a clock in nanoseconds.
inline std::int64_t read_clock(::clockid_t clock = CLOCK_MONOTONIC) {
  ::timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class request_log {
 public:
  /// `cpu` is the clock of the process whose CPU time counts.
  explicit request_log(::clockid_t cpu) : cpu_(cpu) { begin(); }

  /// Drops the requests of the warm-up.
  void begin() {
    took_.clear();
    began_ = read_clock();
    cpu_began_ = read_clock(cpu_);
  }
  void add(std::int64_t took) { took_.push_back(took); }
  void add(const std::vector<std::int64_t>& took) { took_.insert(took_.end(), took.begin(), took.end()); }
  /// Ends the time in which requests count.
  void end() {
    cpu_time_ = read_clock(cpu_) - cpu_began_;
    elapsed_ = read_clock() - began_;
    std::sort(took_.begin(), took_.end());
  }

  [[nodiscard]] std::size_t count() const { return took_.size(); }
  [[nodiscard]] bool empty() const { return took_.empty() || cpu_time_ <= 0; }
  /// Calls print(measure, unit, value) for each figure.
  template <class Print>
  void print_each(Print print) const {
    const auto count = static_cast<double>(took_.size());
    const auto percentile = [&](double of) {
      return static_cast<double>(took_[static_cast<std::size_t>(of * (count - 1))]);
    };
    print("per-cpu", "requests/s", count / static_cast<double>(cpu_time_) * 1e9);
    print("throughput", "requests/s", count / static_cast<double>(elapsed_) * 1e9);
    print("p50", "ns", percentile(0.5));
    print("p99", "ns", percentile(0.99));
    print("p99.9", "ns", percentile(0.999));
  }

 private:
  const ::clockid_t cpu_;
  std::vector<std::int64_t> took_;
  std::int64_t began_ = 0, cpu_began_ = 0, elapsed_ = 0, cpu_time_ = 0;
};

}  // namespace bench
