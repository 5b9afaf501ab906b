// Vector clocks: the order of events of up to sixteen threads (Mattern 1989, Fidge 1988).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

inline constexpr unsigned max_threads = 16;

/// The time that each thread had reached.
class vector_clock {
 public:
  /// Sets the largest number of threads from here on. No event of another thread has a time.
  static void use(unsigned threads) noexcept { used_ = (threads + lanes - 1) / lanes * lanes; }

  void join(const vector_clock& other) noexcept {
    for (std::size_t first = 0; first < used_; first += lanes) {
      for (std::size_t i = first; i < first + lanes; ++i) {
        times_[i] = times_[i] < other.times_[i] ? other.times_[i] : times_[i];
      }
    }
  }
  /// Returns whether any event of `times`, one for each thread, happened before.
  [[nodiscard]] bool covers_any(const vector_clock& times) const noexcept {
    bool any = false;
    for (std::size_t first = 0; first < used_; first += lanes) {
      for (std::size_t i = first; i < first + lanes; ++i) {
        any |= times.times_[i] <= times_[i];
      }
    }
    return any;
  }
  static constexpr std::uint32_t no_time = std::numeric_limits<std::int32_t>::max();
  /// Returns times that no clock covers.
  [[nodiscard]] static vector_clock never() noexcept {
    vector_clock made;
    made.times_.fill(no_time);
    return made;
  }
  void set(unsigned thread, std::uint32_t time) noexcept { times_[thread] = static_cast<std::int32_t>(time); }
  [[nodiscard]] std::uint32_t of(unsigned thread) const noexcept { return static_cast<std::uint32_t>(times_[thread]); }
  std::uint32_t advance(unsigned thread) noexcept { return static_cast<std::uint32_t>(++times_[thread]); }
  /// Returns whether the event of `thread` at `time` happened before.
  [[nodiscard]] bool covers(unsigned thread, std::uint32_t time) const noexcept { return time <= of(thread); }

 private:
  static constexpr std::size_t lanes = 4;  ///< of one vector register of the baseline
  static inline constinit std::size_t used_ = max_threads;

  // Signed: no execution has more steps than they can count, and the baseline of x86-64 compares signed numbers only.
  std::array<std::int32_t, max_threads> times_{};
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
