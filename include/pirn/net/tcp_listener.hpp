// A listening TCP socket.
#pragma once

#include "pirn/net/tcp_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How a listening socket is opened.
struct listen_options {
  /// How many connections the kernel holds until they are accepted (it caps this at net.core.somaxconn).
  int backlog = 4096;
  /// Whether the port may be bound while old connections of it linger.
  bool reuse_address = true;
  /// Whether several listeners may share the port; the kernel spreads connections over them.
  bool reuse_port = false;
  /// Whether a listener on the IPv6 "any" address also takes IPv4 connections.
  bool dual_stack = true;
  /// Whether accepted connections delay small writes (Nagle's algorithm).
  tcp_stream::delay delay = tcp_stream::delay::none;
  /// As in `connect_options`, for the accepted connections.
  int receive_buffer = 0;
  /// As in `connect_options`, for the accepted connections.
  int send_buffer = 0;
};

/// The cause of a failure of `tcp_listener::accept`.
enum class accept_failure : std::uint8_t {
  connection,  ///< the connection was lost; the next one may succeed at once
  shortage,    ///< a lack of descriptors or memory: the connection stays in the queue and may be accepted later
  listener,    ///< accepting is over: a deadline, a stop, a close, or a socket that does not listen
};
/// Classifies an error by accept(2). An error that accept(2) does not name counts as a failure of the connection.
/// `acceptor` uses this function.
[[nodiscard]] accept_failure kind_of_accept_failure(const std::error_code& error) noexcept;

/// A listening socket. Deadlines, stops, threads and errors as for `descriptor`.
class tcp_listener {
 public:
  tcp_listener() noexcept = default;
  /// Binds and listens; port 0 takes any free port (see `local_endpoint`). Does not suspend.
  [[nodiscard]] static result<tcp_listener> listen(const endpoint& at, const listen_options& options = {}) noexcept;
  /// Takes over a non-blocking listening TCP socket that was opened elsewhere (`take_inherited_sockets`). Fails with
  /// std::errc::wrong_protocol_type, and closes it, if it is something else.
  [[nodiscard]] static result<tcp_listener> adopt(descriptor opened) noexcept;

  /// Accepts a connection; suspends until there is one. Connections that were lost in the queue, or that a firewall
  /// refuses, are skipped, at most 32 in a row. Without a descriptor or memory for a connection, fails with
  /// std::errc::too_many_files_open (of the process or the system) or an out-of-memory error; the connection then stays
  /// in the queue. A loop that must survive this is an `acceptor`. Several fibers may accept.
  [[nodiscard]] result<tcp_stream> accept(time_limit deadline = platform::never) noexcept;
  /// As `accept`, but skips nothing: a lost connection is an error, whose kind `kind_of_accept_failure` returns.
  [[nodiscard]] result<tcp_stream> accept_one(time_limit deadline = platform::never) noexcept;

  /// Waits until there may be a connection to accept.
  [[nodiscard]] result<> wait_readable(time_limit deadline = platform::never) noexcept {
    return socket_.wait(io_direction::read, deadline);
  }

  /// Ends waiting accepts with io_error::closed; connections in the queue are reset.
  void close() noexcept { socket_.close(); }
  /// Whether it was not closed.
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  /// Returns the address and port that it listens on.
  [[nodiscard]] result<endpoint> local_endpoint() const noexcept;
  /// Returns the file descriptor's number, as `descriptor::native`. While another fiber or thread may call `close`,
  /// make system calls on it through `invoke`.
  [[nodiscard]] int native() const noexcept { return socket_.native(); }
  /// Makes a system call on the descriptor, as `descriptor::invoke`.
  [[nodiscard]] result<std::int64_t> invoke(descriptor::syscall call, void* argument) const noexcept {
    return socket_.invoke(call, argument);
  }

 protected:
  /// For a listener of another family: takes over a listening socket.
  explicit tcp_listener(descriptor socket) noexcept : socket_(std::move(socket)) {}
  descriptor socket_;  ///< the listening socket
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
