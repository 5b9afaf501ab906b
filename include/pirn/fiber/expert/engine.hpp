// The contract between an idle worker and the kernel. It has two halves: readiness (`attach`, `detach`: a descriptor
// may be ready) and, where an engine has it, completion (`submit`, `cancel`: the kernel has carried out a request).
// Timers are not part of it; they live in the worker, which passes the nearest one as the deadline of `poll`.
#pragma once

#include <memory>
#include <optional>
#include <system_error>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Which readiness of a descriptor is meant.
enum class io_direction : std::uint8_t { read = 0, write = 1 };

class readiness_pool;
class completion;
namespace detail {
class multishot_receive;
}  // namespace detail

/// A file descriptor known to an engine, with its waiters. It belongs to the descriptor until it is detached. When its
/// engine retires, another one takes it over with all waiters and all past signals.
class readiness {
 public:
  /// Suspends until the descriptor may have become ready in `direction` since the last such wait. A hint: try the
  /// operation again, and wait again if it would still block. Any fiber of any worker may wait.
  /// `seen_tick` is the `tick` from before the operation that would have blocked. With it the wait returns at once if
  /// there was a signal since, even if that woke another fiber, which may have left something over.
  [[nodiscard]] wake_reason wait(io_direction direction, platform::time_point deadline,
                                 std::optional<std::uint32_t> seen_tick = {}) noexcept;
  /// For engines: reports that the descriptor has become ready, or has failed, which both directions must find out.
  void signal(io_direction direction) noexcept;
  /// For engines: records that the stream has ended, failed or holds urgent data. From now on an operation that did
  /// less than it could says nothing about the next one.
  void signal_hup_or_error() noexcept {
    sides_[static_cast<int>(io_direction::read)].tick.fetch_or(hup_or_error, platform::memory_order_acq_rel);
  }

  /// Whether an engine that has not retired reports that direction of the descriptor. All waiters are woken when that
  /// ends.
  [[nodiscard]] bool reported(io_direction direction) const noexcept {
    return reported_.load(platform::memory_order_acquire) && (direction == io_direction::read || reports_writes());
  }
  /// For engines: whether an engine is to report when the descriptor becomes writable, not only when it becomes
  /// readable, has ended or has failed.
  [[nodiscard]] bool reports_writes() const noexcept { return reports_writes_.load(platform::memory_order_acquire); }
  /// Returns a number that each signal for the direction changes. If it is `clean`, and unchanged since before a read
  /// that took all there was, there is nothing to read yet.
  [[nodiscard]] std::uint32_t tick(io_direction direction) const noexcept {
    return sides_[static_cast<int>(direction)].tick.load(platform::memory_order_acquire);
  }
  /// The tick of both directions when an engine begins to report the descriptor.
  static constexpr std::uint32_t first_tick = 0;
  /// Whether the stream had not ended or failed and held no urgent data at that tick.
  [[nodiscard]] static bool clean(std::uint32_t tick) noexcept { return (tick & hup_or_error) == 0; }

 private:
  friend class engine;
  friend class readiness_pool;
  friend class detail::intrusive_list<readiness>;
  static constexpr std::uint32_t hup_or_error = 1;
  static constexpr std::uint32_t one_signal = 2;
  struct side {
    wait_queue waiters;
    bool ready = false;
    platform::atomic<std::uint32_t> tick{first_tick};
  };
  side sides_[2];
  platform::atomic<bool> reported_{false};
  platform::atomic<bool> reports_writes_{false};
  int descriptor_ = -1;
  std::shared_ptr<readiness_pool> home_;  ///< the pool that owns its memory, while it is in use
  // Links of a list: what its engine reports, what may still get an event that was fetched, or what its pool has free.
  detail::list_links<readiness> links;
};

/// Turns kernel events into wake-ups; each worker has its own engine.
class engine {
 public:
  /// Whether the engine has the completion half.
  enum class half : std::uint8_t { readiness_only, completion };
  /// Makes an engine without attached descriptors. Throws std::bad_alloc.
  explicit engine(half has = half::readiness_only);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  virtual ~engine();

  /// Begins to report a non-blocking descriptor, or returns null and sets `error`: when it becomes readable, and for
  /// the other direction also when it becomes writable. A socket for datagrams becomes writable with each datagram that
  /// it has sent, for which fibers seldom wait. Any thread.
  [[nodiscard]] readiness* attach(int descriptor, io_direction direction, std::error_code& error) noexcept;
  /// From now on also reports when it becomes writable, or is so now; or returns false and sets `error`. Any thread,
  /// one at a time for each `handle`, which this engine reports.
  [[nodiscard]] bool report_writes(readiness& handle, std::error_code& error) noexcept;
  /// Begins to report what `from`, which has retired, reported to `handle`, and that direction; or returns false and
  /// sets `error`. Fibers and threads may wait for it meanwhile. Any thread, one at a time for each `handle`.
  [[nodiscard]] bool take_over(readiness& handle, engine& from, io_direction direction,
                               std::error_code& error) noexcept;
  /// Ends reporting; there may be no waiters any more. Before the descriptor is closed. Any thread.
  void detach(readiness* handle) noexcept;
  /// Waits until something is ready, `interrupt_poll` was called or the deadline has passed, and wakes the waiters of
  /// all that is ready. With a past deadline it does not wait. Returns how many events there were, each of which may
  /// have made a fiber ready. The owning worker only. Begins with `forget_detached`.
  virtual std::size_t poll(platform::time_point deadline) noexcept = 0;
  /// Ends the present `poll` early, or else the next one. Any thread.
  virtual void interrupt_poll() noexcept = 0;

  /// Whether `submit` is worth a call for anything but a file that is open for O_DIRECT.
  [[nodiscard]] bool completes() const noexcept { return half_ == half::completion; }
  /// Begins to carry out a request, or returns false: the engine does not carry out such a request. A later `poll` ends
  /// it. In the owning worker only, as the next two.
  virtual bool submit(completion& /*what*/) noexcept { return false; }
  /// Asks the kernel to end a request early, which has not ended. A later `poll` ends it nevertheless, with -ECANCELED
  /// if nothing was done.
  virtual void cancel(completion& /*what*/) noexcept {}
  /// Whether the kernel has yet to see a request or a cancellation, which the next `poll` passes on.
  [[nodiscard]] virtual bool has_submissions() const noexcept { return false; }

  /// Begins to receive what arrives at a socket, until the receive ends, or returns false: the engine has no such
  /// receive. In the owning worker only.
  [[nodiscard]] virtual bool begin_receive(detail::multishot_receive& /*what*/) noexcept { return false; }
  /// Makes a later `poll` end it. Any thread, with its lock held.
  void end_receive(detail::multishot_receive& what) noexcept;
  /// Forgets that it is to be ended, since it has ended. In the owning worker only.
  void forget_end(detail::multishot_receive& what) noexcept;
  /// Ends all that is armed. In the owning worker only, before it stops polling.
  virtual void end_receives() noexcept {}
  /// Returns how often ends of requests find the kernel's queue full. They are late, not lost. Any thread.
  [[nodiscard]] virtual std::uint64_t overflows() const noexcept { return 0; }

  /// Declares that polling has ended, and wakes all waiters of reported descriptors: another engine takes these over.
  /// Once, after the last `poll`. O(attached descriptors).
  void retire() noexcept;

 protected:
  /// Makes the kernel report the descriptor to `handle`, with its present readiness; or returns false and sets `error`.
  virtual bool begin(readiness& handle, int descriptor, std::error_code& error) noexcept = 0;
  /// As `begin`, for a descriptor that is reported and whose handle has begun to report writes.
  virtual bool begin_writes(readiness& handle, int descriptor, std::error_code& error) noexcept = 0;
  /// The opposite of `begin`. An event that was already fetched may still reach `handle`.
  virtual void end(readiness& handle, int descriptor) noexcept = 0;
  /// Gives back what was detached before the call. Called when no event of an earlier look at the kernel is left.
  void forget_detached() noexcept {
    if (detached_.load(platform::memory_order_acquire) != nullptr) {
      give_detached_back();
    }
  }

  /// For `poll`: calls `cancel` with each receive that is to be ended.
  void cancel_ended() noexcept {
    if (has_ended_.load(platform::memory_order_acquire)) {
      cancel_each();
    }
  }
  /// Whether such a call would find any.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_.load(platform::memory_order_relaxed); }
  /// Asks the kernel to end a receive.
  virtual void cancel(detail::multishot_receive& /*what*/) noexcept {}

 private:
  void cancel_each() noexcept;
  void enter(readiness& handle) noexcept;
  /// Whether no event can reach `handle` any more; otherwise it is in the detached list now.
  [[nodiscard]] bool remove(readiness& handle) noexcept;
  void give_detached_back() noexcept;

  const std::shared_ptr<readiness_pool> pool_;
  const half half_;
  platform::spinlock lock_;  ///< of the lists and of `retired_`
  detail::intrusive_list<readiness> reporting_;
  platform::atomic<readiness*> detached_{nullptr};
  bool retired_ = false;
  detail::intrusive_list<detail::multishot_receive> ended_;  ///< to be ended
  platform::atomic<bool> has_ended_{false};
};

/// An engine on epoll (edge-triggered) and an eventfd. Throws std::system_error, for instance when the process is
/// out of file descriptors.
std::unique_ptr<engine> make_epoll_engine();
/// An engine on io_uring, which completes requests; readiness it has from epoll. Null if the kernel refuses; `why` is
/// then a text of static duration. Throws as `make_epoll_engine`.
std::unique_ptr<engine> make_uring_engine(const char*& why);
/// Tries io_uring with a request. Returns null if it works, else a text of static duration that says why not.
[[nodiscard]] const char* uring_refusal() noexcept;

/// Which engine the workers of a runtime use.
enum class engine_kind : std::uint8_t {
  automatic,  ///< what the environment variable PIRN_ENGINE says (`epoll` or `uring`), else `epoll`
  epoll,      ///< epoll, and threads of the blocking pool for files
  uring,      ///< io_uring; `epoll` where the kernel or the container refuses it
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
