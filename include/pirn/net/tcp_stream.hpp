// A TCP connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pirn/io/descriptor.hpp"
#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A piece of memory to write from.
struct const_buffer {
  const void* data;
  std::size_t size;
};

/// Which half of a connection.
enum class shutdown_half : std::uint8_t { read, write, both };

/// A TCP connection. Movable while nobody uses it; one fiber may read while another writes. Deadlines, stops, threads
/// and errors as for `descriptor`: every call but the last few is a suspension point, an expired or stopped call fails
/// with io_error::timed_out or stopped, a connection that the peer has reset with std::errc::connection_reset or
/// broken_pipe. No call raises SIGPIPE.
class tcp_stream {
 public:
  /// Not connected: every call fails with io_error::closed.
  tcp_stream() noexcept = default;
  /// Takes over a connected, non-blocking socket.
  explicit tcp_stream(descriptor connected) noexcept : socket_(std::move(connected)) {}

  /// Connects; on any error the attempt is abandoned. Where nobody listens that is std::errc::connection_refused, also
  /// where the kernel would join a socket to itself.
  [[nodiscard]] static result<tcp_stream> connect(const endpoint& to, time_limit deadline = platform::never) noexcept;

  /// Reads at least one byte; 0 means that the peer has ended its half.
  [[nodiscard]] result<std::size_t> read(void* buffer, std::size_t size,
                                         time_limit deadline = platform::never) noexcept {
    return socket_.receive(buffer, size, deadline);
  }
  /// Reads `size` bytes; io_error::end_of_stream if the peer ends its half before.
  [[nodiscard]] result<> read_exactly(void* buffer, std::size_t size, time_limit deadline = platform::never) noexcept;
  /// Writes at least one byte of a non-empty buffer.
  [[nodiscard]] result<std::size_t> write_some(const void* buffer, std::size_t size,
                                               time_limit deadline = platform::never) noexcept;
  /// As if the parts were one buffer, without copying them together. From the 17th on they are for another call.
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts,
                                               time_limit deadline = platform::never) noexcept;
  /// Writes everything. After an error some of it may have been sent.
  [[nodiscard]] result<> write(const void* buffer, std::size_t size, time_limit deadline = platform::never) noexcept;
  [[nodiscard]] result<> write(std::string_view text, time_limit deadline = platform::never) noexcept {
    return write(text.data(), text.size(), deadline);
  }
  /// Writes everything in one go, without copying it together.
  [[nodiscard]] result<> write(std::span<const const_buffer> parts, time_limit deadline = platform::never) noexcept;
  /// Sends up to `size` bytes of a regular file from `offset` without copying them through user space; returns how
  /// many, at least one unless the file ends there. Blocks the worker while the disk is read. What waits in the socket
  /// is still the file's: where that is cut or changed before the peer has taken it, the peer gets zeros or the new
  /// bytes.
  [[nodiscard]] result<std::size_t> send_file(int file, std::uint64_t offset, std::size_t size,
                                              time_limit deadline = platform::never) noexcept;
  /// Waits until there may be something to read.
  [[nodiscard]] result<> wait_readable(time_limit deadline = platform::never) noexcept {
    return socket_.wait(io_direction::read, deadline);
  }

  /// Ends a half, or both: the peer reads the end of the stream; a fiber that reads here does so too. Does not suspend.
  result<> shutdown(shutdown_half which) noexcept;
  /// Ends the operations that are under way with io_error::closed, then closes.
  void close() noexcept { socket_.close(); }
  /// As `close`, but the peer gets a reset, and what it has not taken is dropped at once. After a mere `close` the
  /// kernel keeps that, and goes on offering it to a peer that does not read for a minute or more.
  void close_with_reset() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  /// How many of the bytes written the peer has not acknowledged, its end of the stream among them. Fails with
  /// std::errc::connection_reset where there is no connection any more. Two system calls; does not suspend.
  [[nodiscard]] result<std::size_t> unacknowledged() noexcept;

  /// Small writes are sent at once (Nagle's algorithm off), or not.
  enum class delay : std::uint8_t { allowed, none };
  result<> set_delay(delay what) noexcept;
  /// Bounds what the kernel takes for a peer that does not read: beside what is on its way it holds so many bytes, and
  /// a write waits until half of them have left. Without it that grows to megabytes (net.ipv4.tcp_wmem).
  result<> set_unsent_limit(int bytes) noexcept;
  [[nodiscard]] result<endpoint> local_endpoint() const noexcept;
  [[nodiscard]] result<endpoint> remote_endpoint() const noexcept;
  /// As of `descriptor`: beside a `close` elsewhere, system calls on the number belong into `invoke`.
  [[nodiscard]] int native() const noexcept { return socket_.native(); }
  [[nodiscard]] result<std::int64_t> invoke(descriptor::syscall call, void* argument) const noexcept {
    return socket_.invoke(call, argument);
  }

 private:
  /// Tries to write the first parts but for the first `skip` bytes.
  result<std::size_t> write_from(std::span<const const_buffer> parts, std::size_t skip,
                                 platform::time_point deadline) noexcept;

  descriptor socket_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
