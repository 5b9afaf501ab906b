// The contract between an idle worker and the kernel: five functions. Timers are not part of it; they live in the
// worker, which passes the nearest one as the deadline of `poll`.
#pragma once

#include <memory>
#include <optional>
#include <system_error>

#include "pirn/fiber/wait_queue.hpp"

namespace pirn::inline PIRN_ABI {

enum class io_direction : std::uint8_t { read = 0, write = 1 };

/// A file descriptor known to an engine, and who waits for it. Belongs to its engine, which reuses but never frees
/// it while the engine lives: an event that comes late makes somebody look once in vain.
class readiness {
 public:
  /// Suspends until the descriptor may be ready in `direction` since the last such wait. A hint: try the operation
  /// again and come back if it would still block. Any fiber, of any worker, may wait.
  /// With `tried_at`, the `mark` from before the operation that would have blocked, it returns at once if there
  /// was a signal since, even if that woke another fiber, which may have left something.
  [[nodiscard]] wake_reason wait(io_direction direction, platform::time_point deadline,
                                 std::optional<std::uint32_t> tried_at = {}) noexcept;
  /// For engines: the descriptor has become ready (or failed, which both directions must find out).
  void signal(io_direction direction) noexcept;
  /// For engines: from now on an operation that did less than it could says nothing about the next one, since the
  /// stream has ended, failed or holds urgent data.
  void signal_irregular() noexcept {
    sides_[static_cast<int>(io_direction::read)].mark.fetch_or(irregular, platform::memory_order_acq_rel);
  }

  /// Differs after each signal for the direction. If it is `regular` and still the same as before a read that took all
  /// there was, there is nothing to read yet.
  [[nodiscard]] std::uint32_t mark(io_direction direction) const noexcept {
    return sides_[static_cast<int>(direction)].mark.load(platform::memory_order_acquire);
  }
  [[nodiscard]] static bool regular(std::uint32_t mark) noexcept { return (mark & irregular) == 0; }

 private:
  friend class epoll_engine;
  static constexpr std::uint32_t irregular = 1;
  static constexpr std::uint32_t one_signal = 2;
  struct side {
    wait_queue waiters;
    bool ready = false;
    platform::atomic<std::uint32_t> mark{0};
  };
  side sides_[2];
  readiness* next_free_ = nullptr;
  int descriptor_ = -1;
};

/// What turns kernel events into wake-ups; each worker has its own.
class engine {
 public:
  engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  virtual ~engine() = default;

  /// Begins to report a non-blocking descriptor, or returns null and says why. Any thread.
  virtual readiness* attach(int descriptor, std::error_code& error) noexcept = 0;
  /// Ends reporting; nobody may wait for it any more. Before the descriptor is closed. Any thread.
  virtual void detach(readiness* handle) noexcept = 0;
  /// Waits until something is ready, `notify` was called or the deadline has passed, and wakes the waiters of what
  /// is ready. A deadline in the past only looks. The owning worker only.
  virtual void poll(platform::time_point deadline) noexcept = 0;
  /// Ends the present or else the next `poll` early. Any thread.
  virtual void notify() noexcept = 0;

  /// Says that nobody polls any more: what is attached must be detached and attached elsewhere. Any thread may ask.
  void retire() noexcept { retired_.store(true, platform::memory_order_release); }
  [[nodiscard]] bool retired() const noexcept { return retired_.load(platform::memory_order_acquire); }

 private:
  platform::atomic<bool> retired_{false};
};

/// An engine on epoll (edge-triggered) and an eventfd. Throws std::system_error, for instance when the process is
/// out of file descriptors.
std::unique_ptr<engine> make_epoll_engine();

}  // namespace pirn::inline PIRN_ABI
