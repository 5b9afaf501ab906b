// A TCP port that is listened on.
#pragma once

#include "pirn/net/tcp_stream.hpp"

namespace pirn::inline PIRN_ABI {

struct listen_options {
  /// How many connections the kernel holds until they are accepted (it caps this at net.core.somaxconn).
  int backlog = 4096;
  /// Whether the port may be taken while old connections of it linger.
  bool reuse_address = true;
  /// Whether several listeners may share the port; the kernel spreads connections over them.
  bool reuse_port = false;
  /// Whether a listener on the IPv6 "any" address also takes IPv4 connections.
  bool dual_stack = true;
  /// Whether accepted connections delay small writes (Nagle's algorithm).
  tcp_stream::delay delay = tcp_stream::delay::none;
};

/// A listening socket. Deadlines, stops, threads and errors as for `descriptor`.
class tcp_listener {
 public:
  tcp_listener() noexcept = default;
  /// Binds and listens; port 0 takes any that is free (see `local_endpoint`). Does not suspend.
  [[nodiscard]] static result<tcp_listener> listen(const endpoint& at, const listen_options& options = {}) noexcept;

  /// Waits for a connection. Connections that died in the queue are passed over. Fails with
  /// std::errc::too_many_files_open (of the process or the system) while there is no descriptor for one, which then
  /// stays in the queue. Several fibers may accept.
  [[nodiscard]] result<tcp_stream> accept(platform::time_point deadline = platform::never) noexcept;

  /// Ends waiting accepts with io_error::closed; connections in the queue are reset.
  void close() noexcept { socket_.close(); }
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] result<endpoint> local_endpoint() const noexcept;
  [[nodiscard]] int native() const noexcept { return socket_.native(); }

 private:
  explicit tcp_listener(descriptor socket) noexcept : socket_(std::move(socket)) {}
  descriptor socket_;
};

}  // namespace pirn::inline PIRN_ABI
