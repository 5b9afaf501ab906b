// A file descriptor that fibers wait for. The rest of io, and net, is this loop: try the system call; if it would
// block, wait until the descriptor may be ready; try again.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pirn/fiber/expert/completion.hpp"
#include "pirn/fiber/expert/engine.hpp"
#include "pirn/io/error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class read_view;

/// Owns a non-blocking file descriptor. Movable while it is not in use. Any fiber of any worker, and any plain thread,
/// may call the operations. If two of them run at once in the same direction, they share the arriving data in no
/// promised order.
///
/// The engine of the first waiting fiber's worker registers the descriptor, so an operation that does not wait costs
/// only its system call. When that worker's runtime ends, the engine of the next waiting fiber takes the descriptor
/// over; fibers of other runtimes that wait at that moment do so themselves.
///
/// Every operation takes an absolute deadline as its last parameter and is a suspension point. It fails with
/// io_error::timed_out, stopped or closed, each also where the call would not have waited; otherwise with the kernel's
/// error. A fiber whose operations never wait yields after every 32nd.
class descriptor {
 public:
  /// Makes an empty descriptor: every operation fails with io_error::closed.
  descriptor() noexcept = default;
  /// Takes over a descriptor that is already in non-blocking mode (or never blocks, such as a regular file).
  explicit descriptor(int native) noexcept;
  descriptor(descriptor&& other) noexcept;
  descriptor& operator=(descriptor&& other) noexcept;
  ~descriptor() { close(); }

  /// Takes over any descriptor and makes it non-blocking, without harm to other users of the same open file. A terminal
  /// or pipe is reopened under the same number (through /proc/self/fd). For any other file `close` and `release`
  /// restore the mode, but not if the process exits before. Fails with io_error::shared where that would change
  /// standard input, output or error. Closes the descriptor if it fails.
  static result<descriptor> adopt(int native) noexcept;
  /// Borrows a descriptor of another owner, for instance the socket of a C library: waits for it, and neither closes
  /// it nor changes its mode. `read`, `write` and `perform` are allowed only if it is non-blocking; `wait` and `invoke`
  /// always. The owner must not close it before this is closed or destroyed. Only one descriptor at a time may wait for
  /// a number: the waits of another one fail with std::errc::file_exists.
  static result<descriptor> borrow(int native) noexcept;

  /// Ends the pending operations, with io_error::closed, then closes. A plain thread may take 50 ms to notice. Suspends
  /// only if there are such operations, or an engine receives for `lend`. Any thread or fiber may call it.
  void close() noexcept;
  /// Gives up ownership; the descriptor must not be in use at the time. The mode of an adopted descriptor is restored.
  /// Bytes that have arrived for `lend` are lost; suspends only after such a call.
  [[nodiscard]] int release() noexcept;

  /// Whether it holds a descriptor that was not closed.
  [[nodiscard]] bool is_open() const noexcept {
    return (users_.load(platform::memory_order_acquire) & closed_bit) == 0;
  }
  /// Returns the kernel's number, -1 once it is closed. After a `close` by another fiber the kernel may reuse the
  /// number. So a system call that may run beside a `close` belongs into `invoke` or `perform`, which keep the
  /// descriptor open meanwhile.
  [[nodiscard]] int native() const noexcept { return native_.load(platform::memory_order_relaxed); }

  /// Reads at least one byte; returns 0 at the end.
  [[nodiscard]] result<std::size_t> read(void* buffer, std::size_t size,
                                         time_limit deadline = platform::never) noexcept;
  /// Writes at least one byte of a non-empty buffer. Writing to a pipe without readers raises SIGPIPE, as always.
  [[nodiscard]] result<std::size_t> write(const void* buffer, std::size_t size,
                                          time_limit deadline = platform::never) noexcept;
  /// Waits until the descriptor may have become ready in `direction` since the last such wait. This is a hint: an
  /// attempt must follow. A file that never blocks (a regular file, a folder, /dev/null) is always ready.
  [[nodiscard]] result<> wait(io_direction direction, time_limit deadline = platform::never) noexcept;

  /// As `read`, but only for stream sockets. On TCP a read that takes fewer bytes than it could has taken all there
  /// were, so the next one waits before it tries: one system call less for each message. That holds for plain TCP only:
  /// other protocols end a read where a descriptor, credentials or a record begin. So a protocol of the kernel on top
  /// (kTLS) must be set before the first `receive`.
  [[nodiscard]] result<std::size_t> receive(void* buffer, std::size_t size,
                                            time_limit deadline = platform::never) noexcept;
  /// As `receive`, but lends the bytes where they have arrived; see `read_view`. An empty view is the end. No buffer
  /// exists while it waits. With io_uring the receive stays armed between calls, so that the next one costs no system
  /// call. Bytes leave the socket before they are consumed then: after the first `lend` only `lend`, `receive`, `read`
  /// and `wait` know of all bytes. Other operations that read fail with std::errc::operation_not_supported, and
  /// `invoke` must not read. Calls that have begun before the first `lend` continue as if they had begun after it.
  /// Fails with std::errc::device_or_resource_busy while a view exists, with std::errc::not_enough_memory, and with
  /// std::errc::operation_not_supported for anything but a stream socket.
  [[nodiscard]] result<read_view> lend(time_limit deadline = platform::never) noexcept;

  /// One system call: returns its result, or the negated number of its error. Must not block or suspend.
  using syscall = std::int64_t (*)(int native, void* argument) noexcept;
  /// Repeats `call` until it neither would block nor was interrupted: the loop at the top of this file. `memory` is the
  /// memory that the call reads or writes. If the call fails for a bad address in the guard of a stack, that is
  /// reported as io_error::stack_overflow.
  [[nodiscard]] result<std::int64_t> perform(io_direction direction, platform::time_point deadline, syscall call,
                                             void* argument, std::span<const ::iovec> memory = {}) noexcept;
  /// Makes one call that never blocks, even if the fiber was asked to stop; does not suspend. Safe against a `close`
  /// elsewhere, as the other operations are.
  [[nodiscard]] result<std::int64_t> invoke(syscall call, void* argument) const noexcept;

 private:
  friend class file;
  friend class operation_runner;
  class operation_guard;
  static constexpr std::uint32_t closed_bit = 1;
  static constexpr std::uint32_t one_user = 2;
  static constexpr std::uint32_t no_tick = 1;       ///< in `drained_tick_`; the ticks of a readiness are even
  static constexpr std::uint32_t unknown_tick = 3;  ///< of a readiness that cannot be relied on
  /// The callers that ask the socket itself. Once there was a `lend`, those of `lend` do so one at a time, and no
  /// others.
  enum class caller : std::uint8_t { any, of_lend };

  [[nodiscard]] result<> wait_ready(io_direction direction, platform::time_point deadline,
                                    std::optional<std::uint32_t> seen_tick, caller who) noexcept;
  /// Whether a caller that reads has to look for the bytes of `lend` instead.
  [[nodiscard]] bool is_redirected(io_direction direction, caller who) const noexcept;
  /// Returns the readiness's tick, if there is a readiness yet.
  [[nodiscard]] std::optional<std::uint32_t> raw_tick(io_direction direction) const noexcept;
  /// Returns the readiness, made or taken over if needed, that reports the direction.
  [[nodiscard]] readiness* attached(io_direction direction, std::error_code& error) noexcept;
  /// Returns whether a `receive` that took fewer bytes than it could took all there were.
  [[nodiscard]] bool short_read_is_all(int native) noexcept;
  /// Returns the error that ends an operation before its first attempt.
  [[nodiscard]] std::error_code reason_to_refuse(const operation_guard& guard, io_direction direction,
                                                 platform::time_point deadline) noexcept;
  /// Called after an operation that did not wait: yields now and then.
  void count_unsuspended(io_direction direction) noexcept;
  /// As that, but returns whether it is time to yield.
  [[nodiscard]] bool spends_budget(io_direction direction) noexcept;
  /// Returns the readiness's tick if it can be relied on, otherwise `unknown_tick`.
  [[nodiscard]] std::uint32_t current_tick() const noexcept;
  void take(descriptor& other) noexcept;
  /// Calls `leave_parent` if this process was made by fork since the last use.
  void notice_fork() noexcept;
  /// Forgets the operations under way, which are those of the parent, and the engine, which both processes share: an
  /// end of its reports would deprive the parent of them.
  void leave_parent() noexcept;
  /// As `close`, but leaves the last call to the caller: returns the number to close, or -1.
  [[nodiscard]] int end() noexcept;

  /// As `perform`.
  [[nodiscard]] result<std::int64_t> repeat(io_direction direction, platform::time_point deadline, syscall call,
                                            void* argument, std::span<const ::iovec> memory, caller who) noexcept;
  /// Makes one attempt to receive, and remembers whether it took all there was.
  [[nodiscard]] std::int64_t receive_at_once(int native, void* into, std::size_t size) noexcept;
  /// Returns what has arrived for `lend`, made if needed; or null, and sets `error`.
  [[nodiscard]] detail::multishot_receive* receives(std::error_code& error) noexcept;
  /// Makes calls that have begun before the first `lend`, and that read, look for its bytes too.
  void redirect_readers() noexcept;
  /// Waits for bytes, the end or an error, and returns with the lock held; or returns the error that has ended the
  /// wait, or that the bytes are lent, without it.
  [[nodiscard]] std::error_code fetch(detail::multishot_receive& into, platform::time_point deadline) noexcept;
  /// Makes the engine receive, if it can, or receives once. Begins with the lock held, which is released.
  [[nodiscard]] std::error_code receive_more(detail::multishot_receive& into, platform::time_point deadline) noexcept;
  /// Waits for what the engine receives, with the lock held, which is released. Returns the reason if it gives up.
  [[nodiscard]] std::error_code wait_for_arrival(detail::multishot_receive& at, platform::time_point deadline) noexcept;
  /// Reads by a call, or as `receive_lent` if there was a `lend` meanwhile.
  [[nodiscard]] result<std::size_t> read_by(syscall call, void* argument, const ::iovec& into,
                                            platform::time_point deadline) noexcept;
  /// As `receive`, once there was a `lend`.
  [[nodiscard]] result<std::size_t> receive_lent(void* buffer, std::size_t size,
                                                 platform::time_point deadline) noexcept;
  /// As `wait` for bytes, once there was a `lend`.
  [[nodiscard]] result<> wait_lent(detail::multishot_receive& at, platform::time_point deadline) noexcept;
  /// As `wait`, at the socket itself.
  [[nodiscard]] result<> wait_at_socket(io_direction direction, platform::time_point deadline, caller who) noexcept;
  /// Makes the engine end its receive, and wakes readers. Returns whether it has ended.
  [[nodiscard]] bool ends_receiving() noexcept;

  platform::atomic<int> native_{-1};
  platform::signal_atomic<unsigned> process_{0};  ///< how often it was forked
  /// Bit 0: closed; from bit 1: the number of pending operations. No operation begins after the bit is set, and the
  /// descriptor is closed when none is left, so its number cannot be reused during an operation.
  mutable platform::atomic<std::uint32_t> users_{closed_bit};
  platform::atomic<readiness*> handle_{nullptr};
  std::shared_ptr<engine> engine_;  ///< of `handle_`; used under the lock
  platform::spinlock attaching_;
  detail::intrusive_list<completion> requests_;                     ///< under way; used under the lock
  platform::atomic<detail::multishot_receive*> receives_{nullptr};  ///< owned; once there was a `lend`
  platform::atomic<std::uint8_t> unsuspended_[2] = {};  ///< operations in a row that did not wait, per direction
  /// The readiness's tick from before a `receive` that took all the bytes; `no_tick` after any other.
  platform::atomic<std::uint32_t> drained_tick_{no_tick};
  enum class protocol : std::uint8_t { unknown, plain_tcp, other };
  platform::atomic<protocol> protocol_{protocol::unknown};
  platform::atomic<bool> took_all_{false};  ///< whether the last `receive` by an engine got less than it could
  bool borrowed_ = false;
  bool blocks_ = false;  ///< whether to restore its blocking mode when it is given back
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
