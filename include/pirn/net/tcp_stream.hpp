// A TCP connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "pirn/io/descriptor.hpp"
#include "pirn/io/expert/stream_parts.hpp"
#include "pirn/io/stream.hpp"
#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

struct connect_options;

/// A TCP connection. Movable while no fiber uses it; one fiber may read while another writes. Deadlines, stops, threads
/// and errors are as for `descriptor`. Every call except the last few is a suspension point. A call fails with
/// io_error::timed_out or stopped if it expires or is stopped, and with std::errc::connection_reset or broken_pipe if
/// the peer has reset the connection. No call raises SIGPIPE.
class tcp_stream {
 public:
  /// Makes an unconnected stream: every call fails with io_error::closed.
  tcp_stream() noexcept = default;
  /// Takes over a connected, non-blocking socket.
  explicit tcp_stream(descriptor connected) noexcept : socket_(std::move(connected)) {}

  /// Connects; on any error the attempt is abandoned. Fails with std::errc::connection_refused if no process listens
  /// there, also where the kernel would connect the socket to itself.
  [[nodiscard]] static result<tcp_stream> connect(const endpoint& to, time_limit deadline = platform::never) noexcept;
  /// As `connect` without options. Fails also with std::errc::address_not_available if the source is no address of this
  /// machine, and with std::errc::address_in_use if its port is taken.
  [[nodiscard]] static result<tcp_stream> connect(const endpoint& to, const connect_options& options,
                                                  time_limit deadline = platform::never) noexcept;

  /// Reads at least one byte; 0 means that the peer has ended its half.
  [[nodiscard]] result<std::size_t> read(void* buffer, std::size_t size,
                                         time_limit deadline = platform::never) noexcept {
    return socket_.receive(buffer, size, deadline);
  }
  /// Lends the bytes that have arrived, without a copy; an empty view means that the peer has ended its half. No buffer
  /// exists while it waits. See `descriptor::lend` for what else may read the socket afterwards.
  [[nodiscard]] result<read_view> lend(time_limit deadline = platform::never) noexcept {
    return socket_.lend(deadline);
  }
  /// Reads `size` bytes; fails with io_error::end_of_stream if the peer ends its half before.
  [[nodiscard]] result<> read_exactly(void* buffer, std::size_t size, time_limit deadline = platform::never) noexcept;
  /// Writes at least one byte of a non-empty buffer.
  [[nodiscard]] result<std::size_t> write_some(const void* buffer, std::size_t size,
                                               time_limit deadline = platform::never) noexcept;
  /// As `write_some` of one buffer, but takes several parts without copying them together. A call takes at most 16
  /// parts; the others are for another call.
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts,
                                               time_limit deadline = platform::never) noexcept;
  /// Writes everything. After an error some of it may have been sent.
  [[nodiscard]] result<> write(const void* buffer, std::size_t size, time_limit deadline = platform::never) noexcept;
  /// As `write` above, of a text.
  [[nodiscard]] result<> write(std::string_view text, time_limit deadline = platform::never) noexcept {
    return write(text.data(), text.size(), deadline);
  }
  /// As `write` of one buffer, but takes several parts, in one system call where possible, without copying them
  /// together.
  [[nodiscard]] result<> write(std::span<const const_buffer> parts, time_limit deadline = platform::never) noexcept;
  /// Sends up to `size` bytes of a regular file from `offset` without copying them through user space. Returns the
  /// number of bytes sent, at least one unless the file ends there. Blocks the worker while the disk is read. The
  /// socket refers to the file's pages until the peer has taken them: if the file is truncated or changed before that,
  /// the peer gets zeros or the new bytes.
  [[nodiscard]] result<std::size_t> send_file(int file, std::uint64_t offset, std::size_t size,
                                              time_limit deadline = platform::never) noexcept;
  /// Waits until there may be something to read.
  [[nodiscard]] result<> wait_readable(time_limit deadline = platform::never) noexcept {
    return socket_.wait(io_direction::read, deadline);
  }

  /// Ends one half or both: the peer reads the end of the stream, and so does a fiber that reads here. Does not
  /// suspend.
  result<> shutdown(shutdown_half which) noexcept;
  /// Ends pending operations with io_error::closed, then closes.
  void close() noexcept { socket_.close(); }
  /// As `close`, but the peer gets a reset, and the kernel drops data that the peer has not taken. After a plain
  /// `close` the kernel keeps that data, and offers it for a minute or more to a peer that does not read.
  void close_with_reset() noexcept;
  /// Ends the writing half, and waits until the peer has acknowledged everything that was written, and the end; `close`
  /// may follow. Fails with std::errc::connection_reset if the connection ends before. It takes the place of SO_LINGER,
  /// with which `close` blocks the worker. The kernel does not report an acknowledgement, so the fiber looks again
  /// after 50 us at first and every 10 ms later.
  result<> linger(time_limit deadline = platform::never) noexcept;
  /// Whether it was not closed.
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  /// Returns the number of written bytes that the peer has not acknowledged, including the end of the stream. Fails
  /// with std::errc::connection_reset if the connection no longer exists. Two system calls; does not suspend.
  [[nodiscard]] result<std::size_t> unacknowledged() noexcept;

  /// Whether small writes may be delayed (Nagle's algorithm) or are sent at once.
  enum class delay : std::uint8_t { allowed, none };
  /// Sets whether small writes may be delayed. Connected and accepted streams begin with `delay::none`, unless the
  /// options of `connect` or `listen` say otherwise.
  result<> set_delay(delay what) noexcept;
  /// Limits the bytes that the kernel accepts for a peer that does not read. Besides the data in flight it holds
  /// `bytes` bytes, and a write waits until half of them have left. Without a limit its buffer grows to megabytes
  /// (net.ipv4.tcp_wmem).
  result<> set_unsent_limit(int bytes) noexcept;
  /// How the kernel finds out that a silent peer is gone.
  struct keep_alive {
    time_span idle = std::chrono::minutes(1);       ///< the silence before the first probe; 1 s to 9 h
    time_span interval = std::chrono::seconds(10);  ///< between probes; 1 s to 9 h
    int probes = 6;                                 ///< the probes without an answer that end the connection; 1 to 127
  };
  /// Probes a silent peer, or no longer without `how`. Times are rounded up to seconds. A peer that does not answer
  /// ends the connection: calls fail with std::errc::timed_out. Fails with std::errc::invalid_argument if `how` is out
  /// of range.
  result<> set_keep_alive(std::optional<keep_alive> how) noexcept;
  /// Sets the sizes of the kernel's buffers, as `connect_options` does; 0 leaves one as it is.
  result<> set_buffers(int receive, int send) noexcept;
  /// Returns the address and port of this side.
  [[nodiscard]] result<endpoint> local_endpoint() const noexcept;
  /// Returns the address and port of the peer.
  [[nodiscard]] result<endpoint> remote_endpoint() const noexcept;
  /// Returns the file descriptor's number, as `descriptor::native`. While another fiber or thread may call `close`,
  /// make system calls on it through `invoke`.
  [[nodiscard]] int native() const noexcept { return socket_.native(); }
  /// Makes a system call on the descriptor, as `descriptor::invoke`.
  [[nodiscard]] result<std::int64_t> invoke(descriptor::syscall call, void* argument) const noexcept {
    return socket_.invoke(call, argument);
  }

 protected:
  descriptor socket_;  ///< the connected socket, also of another family

 private:
  /// Tries to write the first parts without their first `skip` bytes.
  result<std::size_t> write_from(std::span<const const_buffer> parts, std::size_t skip,
                                 platform::time_point deadline) noexcept;
};

/// How a connection is opened.
struct connect_options {
  /// The address that the connection comes from; with a port also the port. The kernel chooses what is not given.
  std::optional<endpoint> source = {};
  /// Whether small writes may be delayed.
  tcp_stream::delay delay = tcp_stream::delay::none;
  /// The bytes that the kernel holds for the reader; 0 lets it choose, and change that as needed, which is best for
  /// most (net.ipv4.tcp_rmem). The kernel caps it at net.core.rmem_max. It limits what is in flight from the beginning.
  int receive_buffer = 0;
  /// The bytes that the kernel holds until the peer has them; 0 lets it choose, and change that as needed
  /// (net.ipv4.tcp_wmem). The kernel caps it at net.core.wmem_max.
  int send_buffer = 0;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
