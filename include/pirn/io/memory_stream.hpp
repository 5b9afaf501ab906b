// A connection whose two ends are in this process, without the kernel.
#pragma once

#include <memory>
#include <utility>

#include "pirn/io/detail/whole_calls.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
struct memory_connection;
}  // namespace detail

/// One end of a connection in memory: for tests, and for a protocol between two parts of a program. Each direction
/// holds up to `capacity` bytes; writers wait while it is full. Fibers of any worker and plain threads may use either
/// end; one may read while another writes. Each of two that read at once, or write at once, moves other bytes, in no
/// promised order. Movable while it is not in use. Destroyed, it is closed.
///
/// Every call with a deadline is a suspension point, and fails with io_error::timed_out, stopped, expired or closed,
/// each also where it would not have waited; a write with std::errc::broken_pipe once either side has ended that
/// direction. A call for no bytes returns 0 where another one would move some or wait. A call moves at most 16 KiB; a
/// fiber whose calls never wait yields after every 32nd.
class memory_stream final : public detail::whole_reads<memory_stream>, public detail::whole_writes<memory_stream> {
 public:
  /// Makes an unconnected end: every call fails with io_error::closed. A moved-from one is unconnected too.
  memory_stream() noexcept = default;
  /// Makes both ends of a connection, with `capacity` bytes, at least one, in each direction. Throws std::bad_alloc.
  [[nodiscard]] static std::pair<memory_stream, memory_stream> pair(std::size_t capacity = std::size_t{64} * 1024);
  memory_stream(memory_stream&& other) noexcept;
  memory_stream& operator=(memory_stream&& other) noexcept;
  ~memory_stream() { close(); }

  /// Reads at least one byte; 0 means that the peer has ended its half, and that all its bytes have been read.
  [[nodiscard]] result<std::size_t> read(void* buffer, std::size_t size,
                                         time_limit deadline = platform::never) noexcept;
  using detail::whole_writes<memory_stream>::write_some;
  /// As `write_some` of one buffer, but takes several parts.
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts,
                                               time_limit deadline = platform::never) noexcept;
  /// As `read`, without a copy: see `read_view`. The view's bytes keep their room in the connection until it ends.
  [[nodiscard]] result<read_view> lend(time_limit deadline = platform::never) noexcept;
  /// Waits until there is something to read, or the end.
  [[nodiscard]] result<> wait_readable(time_limit deadline = platform::never) noexcept;

  /// Ends one half or both. After the end of the writing half the peer reads what is left, then the end. After that of
  /// the reading half, reads here return 0 and writes of the peer fail. Does not suspend.
  result<> shutdown(shutdown_half which) noexcept;
  /// Ends pending calls with io_error::closed, and both directions: the peer can still read what was written before.
  /// Does not suspend. Any thread or fiber may call it.
  void close() noexcept;
  /// Whether it is connected and was not closed.
  [[nodiscard]] bool is_open() const noexcept;
  /// Returns the number of written bytes that the peer has not read; 0 once it cannot read them any more. Does not
  /// suspend.
  [[nodiscard]] result<std::size_t> unacknowledged() const noexcept;

 private:
  memory_stream(std::shared_ptr<detail::memory_connection> connection, unsigned side) noexcept;

  std::shared_ptr<detail::memory_connection> connection_;
  unsigned side_ = 0;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
