// What can wait: a fiber or a plain OS thread, behind one word that decides who wakes it and why.
#pragma once

#include <cstdint>

#include "pirn/detail/platform.hpp"

namespace pirn::inline PIRN_ABI {

/// Why a wait ended.
enum class wake_reason : std::uint8_t { notified, timed_out, stopped };

namespace detail {

/// The word of an agent, from the low end:
///   bit 0     waiting: set by the agent when it begins a wait, cleared by whoever claims it (compare-and-swap)
///   bit 1     stoppable: the present wait ends when a stop is requested
///   bit 2     stop requested: set once by anyone, never cleared
///   bits 3-4  wake_reason of the last claim
///   bits 5-   epoch: one more for each wait, so that a claim meant for an earlier wait fails
class agent {
 public:
  enum class kind : std::uint8_t { fiber, thread };

  explicit agent(kind k) noexcept : kind_(k) {}
  agent(const agent&) = delete;
  agent& operator=(const agent&) = delete;

  /// Opens a wait. False if it is stoppable and a stop was requested: the agent must not suspend then.
  PIRN_ALWAYS_INLINE bool begin(bool stoppable, std::uint64_t& epoch) noexcept {
    std::uint64_t old = word_.load(platform::memory_order_relaxed);
    for (;;) {
      if (stoppable && (old & stop_bit) != 0) {
        return false;
      }
      const std::uint64_t next = (((old >> epoch_shift) + 1) << epoch_shift) | (old & stop_bit) |
                                 (stoppable ? stoppable_bit : 0) | waiting_bit;
      // Acquire pairs with request_stop, so that a stopped agent sees what its stopper did before.
      if (word_.compare_exchange_weak(old, next, platform::memory_order_acq_rel, platform::memory_order_relaxed)) {
        epoch = next >> epoch_shift;
        return true;
      }
    }
  }

  /// Ends the wait of `epoch` for `reason`; exactly one claim of a wait succeeds, and its caller must make the
  /// agent runnable.
  PIRN_ALWAYS_INLINE bool claim(std::uint64_t epoch, wake_reason reason) noexcept {
    std::uint64_t old = word_.load(platform::memory_order_relaxed);
    for (;;) {
      if ((old >> epoch_shift) != epoch || (old & waiting_bit) == 0) {
        return false;
      }
      if (word_.compare_exchange_weak(old, claimed(old, reason), platform::memory_order_acq_rel,
                                      platform::memory_order_relaxed)) {
        return true;
      }
    }
  }

  /// Marks the agent as asked to stop, for good. True if that ended a stoppable wait: the caller must make the
  /// agent runnable.
  bool request_stop() noexcept {
    std::uint64_t old = word_.load(platform::memory_order_relaxed);
    for (;;) {
      const bool claims = (old & waiting_bit) != 0 && (old & stoppable_bit) != 0;
      const std::uint64_t next = (claims ? claimed(old, wake_reason::stopped) : old) | stop_bit;
      if (word_.compare_exchange_weak(old, next, platform::memory_order_acq_rel, platform::memory_order_relaxed)) {
        return claims;
      }
    }
  }

  [[nodiscard]] bool waiting() const noexcept {
    return (word_.load(platform::memory_order_acquire) & waiting_bit) != 0;
  }
  [[nodiscard]] bool stop_requested() const noexcept {
    return (word_.load(platform::memory_order_acquire) & stop_bit) != 0;
  }
  /// Why the last wait ended.
  [[nodiscard]] wake_reason reason() const noexcept {
    return static_cast<wake_reason>((word_.load(platform::memory_order_acquire) >> reason_shift) & 3);
  }
  [[nodiscard]] kind what() const noexcept { return kind_; }

 private:
  static constexpr std::uint64_t waiting_bit = 1;
  static constexpr std::uint64_t stoppable_bit = 2;
  static constexpr std::uint64_t stop_bit = 4;
  static constexpr int reason_shift = 3;
  static constexpr int epoch_shift = 5;

  static std::uint64_t claimed(std::uint64_t old, wake_reason reason) noexcept {
    const std::uint64_t kept = old & ~(waiting_bit | stoppable_bit | (std::uint64_t{3} << reason_shift));
    return kept | (static_cast<std::uint64_t>(reason) << reason_shift);
  }

  platform::atomic<std::uint64_t> word_{0};
  kind kind_;
};

}  // namespace detail
}  // namespace pirn::inline PIRN_ABI
