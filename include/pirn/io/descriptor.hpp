// A file descriptor that fibers wait for. The rest of io, and net, is this loop: try the system call; if it would
// block, wait until the descriptor may be ready; try again.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pirn/fiber/engine.hpp"
#include "pirn/io/error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Owns a non-blocking file descriptor. Movable while nobody uses it. Any fiber of any worker, and any plain thread,
/// may call the operations, but two of them at once in the same direction share what arrives in no promised order.
///
/// The descriptor is made known to the engine of the worker whose fiber is the first to wait for it, so an operation
/// that does not have to wait costs its system call. When that worker's runtime ends, the engine of the next fiber that
/// waits takes it over; fibers of other runtimes that wait at that moment do so themselves.
///
/// Every operation takes an absolute deadline as its last parameter, is a suspension point, and fails with
/// io_error::timed_out, stopped or closed, each also where the call would not have had to wait; otherwise with the
/// kernel's error. A fiber whose operations never have to wait lets others run after every 32nd.
class descriptor {
 public:
  /// No descriptor: every operation fails with io_error::closed.
  descriptor() noexcept = default;
  /// Takes over a descriptor that must be in non-blocking mode already (or never block, as regular files).
  explicit descriptor(int native) noexcept;
  descriptor(descriptor&& other) noexcept;
  descriptor& operator=(descriptor&& other) noexcept;
  ~descriptor() { close(); }

  /// Takes over any descriptor and makes it non-blocking without harm to others that use the same open file: a terminal
  /// or pipe is opened anew under the same number (through /proc/self/fd); of anything else the mode is put back by
  /// `close` and `release`, though not by an exit of the process before. Fails with io_error::shared where that would
  /// change standard input, output or error, and closes it if it fails.
  static result<descriptor> adopt(int native) noexcept;
  /// For a descriptor that somebody else owns, for instance the socket of a C library: waits for it, and neither closes
  /// it nor changes its mode. `read`, `write` and `perform` only if it is non-blocking; `wait` and `invoke` always. The
  /// owner must not close it before this is closed or destroyed. Only one at a time may wait for a number: the waits of
  /// another fail with std::errc::file_exists.
  static result<descriptor> borrow(int native) noexcept;

  /// Ends the operations that are under way, with io_error::closed, then closes. A plain thread may take 50 ms to
  /// notice. Suspends only if there are any. Any thread or fiber.
  void close() noexcept;
  /// Gives up ownership; nobody may use the descriptor at the time. One that was adopted gets its mode back.
  [[nodiscard]] int release() noexcept;

  [[nodiscard]] bool is_open() const noexcept {
    return (users_.load(platform::memory_order_acquire) & closed_bit) == 0;
  }
  /// The kernel's number, -1 once it is closed. Another fiber's `close` gives the number to others, so a system call on
  /// it beside one belongs into `invoke` or `perform`, which keep it open meanwhile.
  [[nodiscard]] int native() const noexcept { return native_.load(platform::memory_order_relaxed); }

  /// Reads at least one byte; 0 is the end.
  [[nodiscard]] result<std::size_t> read(void* buffer, std::size_t size,
                                         time_limit deadline = platform::never) noexcept;
  /// Writes at least one byte of a non-empty buffer. Writing to a pipe that nobody reads raises SIGPIPE, as always.
  [[nodiscard]] result<std::size_t> write(const void* buffer, std::size_t size,
                                          time_limit deadline = platform::never) noexcept;
  /// Waits until the descriptor may be ready in `direction` since the last such wait: a hint, to be followed by an
  /// attempt. What never blocks (a file, a folder, /dev/null) is ready always.
  [[nodiscard]] result<> wait(io_direction direction, time_limit deadline = platform::never) noexcept;

  /// As `read`, for stream sockets only. On TCP a read that takes less than it could took all there was, so the next
  /// one waits before it tries: one system call less for each message. That holds for plain TCP only: others end a read
  /// where a descriptor, credentials or a record begin. So a protocol on top that the kernel does (kTLS) is to be set
  /// before the first `receive`.
  [[nodiscard]] result<std::size_t> receive(void* buffer, std::size_t size,
                                            time_limit deadline = platform::never) noexcept;

  /// One system call: returns what it returned, or the negated number of its error. Must not block or suspend.
  using syscall = std::int64_t (*)(int native, void* argument) noexcept;
  /// Repeats `call` until it neither would block nor was interrupted; the loop above. `memory` is what the call reads
  /// or writes: if it fails for a bad address in the guard of a stack, that is reported as io_error::stack_overflow.
  [[nodiscard]] result<std::int64_t> perform(io_direction direction, platform::time_point deadline, syscall call,
                                             void* argument, std::span<const ::iovec> memory = {}) noexcept;
  /// Makes one call that never blocks, whatever the fiber was asked; does not suspend. Safe against a `close`
  /// elsewhere, as the other operations are.
  [[nodiscard]] result<std::int64_t> invoke(syscall call, void* argument) const noexcept;

 private:
  class operation_guard;
  static constexpr std::uint32_t closed_bit = 1;
  static constexpr std::uint32_t one_user = 2;
  static constexpr std::uint32_t no_tick = 1;       ///< in `drained_tick_`; the ticks of a readiness are even
  static constexpr std::uint32_t unknown_tick = 3;  ///< of a readiness that cannot be relied on

  [[nodiscard]] result<> wait_ready(io_direction direction, platform::time_point deadline,
                                    std::optional<std::uint32_t> seen_tick = {}) noexcept;
  /// The readiness's tick, if there is a readiness yet.
  [[nodiscard]] std::optional<std::uint32_t> raw_tick(io_direction direction) const noexcept;
  /// The readiness, made or taken over if need be; `found` says that it was reported already.
  [[nodiscard]] readiness* attached(std::error_code& error, bool& found) noexcept;
  /// Whether a `receive` that took less than it could took all there was.
  [[nodiscard]] bool short_read_is_all(int native) noexcept;
  /// After an operation that did not wait: now and then lets others run.
  void count_unsuspended(io_direction direction) noexcept;
  /// The readiness's tick if it can be relied on, else `unknown_tick`.
  [[nodiscard]] std::uint32_t current_tick() const noexcept;
  void take(descriptor& other) noexcept;

  platform::atomic<int> native_{-1};
  /// Bit 0: closed; from bit 1: how many operations are under way. Nobody begins one after the bit is set, and the
  /// descriptor is closed when none is left, so its number cannot be reused under an operation.
  mutable platform::atomic<std::uint32_t> users_{closed_bit};
  platform::atomic<readiness*> handle_{nullptr};
  std::shared_ptr<engine> engine_;  ///< of `handle_`; used under the lock
  platform::spinlock attaching_;
  platform::atomic<std::uint8_t> unsuspended_[2] = {};  ///< operations in a row that did not wait, per direction
  /// The readiness's tick from before a `receive` that took all there was; `no_tick` after any other.
  platform::atomic<std::uint32_t> drained_tick_{no_tick};
  enum class protocol : std::uint8_t { unknown, plain_tcp, other };
  platform::atomic<protocol> protocol_{protocol::unknown};
  bool borrowed_ = false;
  bool blocks_ = false;  ///< it is to block again once it is given back
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
