// The contract between an idle worker and the kernel: four functions. Timers are not part of it; they live in the
// worker, which passes the nearest one as the deadline of `poll`.
#pragma once

#include <memory>
#include <optional>
#include <system_error>

#include "pirn/fiber/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

enum class io_direction : std::uint8_t { read = 0, write = 1 };

class readiness_pool;

/// A file descriptor known to an engine, and who waits for it. It is the descriptor's until that is detached: where its
/// engine retires, another one takes it over with all who wait and all that has been told.
class readiness {
 public:
  /// Suspends until the descriptor may be ready in `direction` since the last such wait. A hint: try the operation
  /// again and come back if it would still block. Any fiber, of any worker, may wait.
  /// With `seen_tick`, the `tick` from before the operation that would have blocked, it returns at once if there
  /// was a signal since, even if that woke another fiber, which may have left something.
  [[nodiscard]] wake_reason wait(io_direction direction, platform::time_point deadline,
                                 std::optional<std::uint32_t> seen_tick = {}) noexcept;
  /// For engines: the descriptor has become ready (or failed, which both directions must find out).
  void signal(io_direction direction) noexcept;
  /// For engines: from now on an operation that did less than it could says nothing about the next one, since the
  /// stream has ended, failed or holds urgent data.
  void signal_hup_or_error() noexcept {
    sides_[static_cast<int>(io_direction::read)].tick.fetch_or(hup_or_error, platform::memory_order_acq_rel);
  }

  /// Whether an engine that has not retired reports it. All who wait are told when that ends.
  [[nodiscard]] bool reported() const noexcept { return reported_.load(platform::memory_order_acquire); }
  /// Differs after each signal for the direction. If it is `clean` and still the same as before a read that took all
  /// there was, there is nothing to read yet.
  [[nodiscard]] std::uint32_t tick(io_direction direction) const noexcept {
    return sides_[static_cast<int>(direction)].tick.load(platform::memory_order_acquire);
  }
  [[nodiscard]] static bool clean(std::uint32_t tick) noexcept { return (tick & hup_or_error) == 0; }

 private:
  friend class engine;
  friend class readiness_pool;
  static constexpr std::uint32_t hup_or_error = 1;
  static constexpr std::uint32_t one_signal = 2;
  struct side {
    wait_queue waiters;
    bool ready = false;
    platform::atomic<std::uint32_t> tick{0};
  };
  side sides_[2];
  platform::atomic<bool> reported_{false};
  int descriptor_ = -1;
  std::shared_ptr<readiness_pool> home_;  ///< whose memory it is, while it is used
  // In the list of what its engine reports, of what that may still hold an event of, or of what its pool has free.
  readiness* next_ = nullptr;
  readiness* previous_ = nullptr;
};

/// What turns kernel events into wake-ups; each worker has its own.
class engine {
 public:
  engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  virtual ~engine();

  /// Begins to report a non-blocking descriptor, or returns null and says why. Any thread.
  [[nodiscard]] readiness* attach(int descriptor, std::error_code& error) noexcept;
  /// Reports from now on what `from`, which has retired, did; or returns false and says why. Fibers and threads may
  /// wait for it meanwhile. Any thread, one at a time for each `handle`.
  [[nodiscard]] bool take_over(readiness& handle, engine& from, std::error_code& error) noexcept;
  /// Ends reporting; nobody may wait for it any more. Before the descriptor is closed. Any thread.
  void detach(readiness* handle) noexcept;
  /// Waits until something is ready, `notify` was called or the deadline has passed, and wakes the waiters of what
  /// is ready. A deadline in the past only looks. The owning worker only. Begins with `forget_detached`.
  virtual void poll(platform::time_point deadline) noexcept = 0;
  /// Ends the present or else the next `poll` early. Any thread.
  virtual void notify() noexcept = 0;

  /// Says that nobody polls any more, and wakes all who wait for what it has reported: another engine takes that over
  /// for them. Once, after the last `poll`. O(what is attached).
  void retire() noexcept;

 protected:
  /// Lets the kernel report the descriptor to `handle`, and what it is ready for now; or returns false and says why.
  virtual bool begin(readiness& handle, int descriptor, std::error_code& error) noexcept = 0;
  /// The opposite. An event that has been fetched already may still come to `handle`.
  virtual void end(readiness& handle, int descriptor) noexcept = 0;
  /// Gives back what was detached before the call. When no event is left of an earlier look at the kernel.
  void forget_detached() noexcept {
    if (detached_.load(platform::memory_order_acquire) != nullptr) {
      give_detached_back();
    }
  }

 private:
  void enter(readiness& handle) noexcept;
  /// Whether no event can come to it any more; else it is among the detached.
  [[nodiscard]] bool remove(readiness& handle) noexcept;
  void give_detached_back() noexcept;

  const std::shared_ptr<readiness_pool> pool_;
  platform::spinlock lock_;  ///< of the lists, and of the end
  readiness* reporting_ = nullptr;
  platform::atomic<readiness*> detached_{nullptr};
  bool retired_ = false;
};

/// An engine on epoll (edge-triggered) and an eventfd. Throws std::system_error, for instance when the process is
/// out of file descriptors.
std::unique_ptr<engine> make_epoll_engine();

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
