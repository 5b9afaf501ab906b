// A listening Unix socket.
#pragma once

#include "pirn/net/detail/socket_file.hpp"
#include "pirn/net/tcp_listener.hpp"
#include "pirn/net/unix_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How a listening Unix socket is opened.
struct unix_listen_options {
  /// How many connections the kernel holds until they are accepted (it caps this at net.core.somaxconn).
  int backlog = 4096;
  /// The permissions of the socket's file, from which the process's umask takes away. A client needs that of writing.
  unsigned permissions = 0777;
  /// Whether to replace a socket's file at the path at which no process listens, as a crash leaves one. Of two programs
  /// that do so at the same moment, the later one has the path.
  bool replace_stale = true;
};

/// A listening Unix socket. The calls that it shares with `tcp_listener` have the same declarations and are documented
/// there. A path's file is removed when the listener is closed or destroyed, but only by the process that made it.
class unix_listener : private tcp_listener {  // which differs only in addresses
 public:
  unix_listener() noexcept = default;
  /// Binds and listens; without an address the kernel chooses an abstract one (see `local_address`). Fails with
  /// std::errc::address_in_use if there is a file at the path (but see `replace_stale`), or a socket with the abstract
  /// name. Does not suspend.
  [[nodiscard]] static result<unix_listener> listen(const unix_address& at,
                                                    const unix_listen_options& options = {}) noexcept;
  /// Takes over a non-blocking listening Unix socket that was opened elsewhere; its file stays when it is closed. Fails
  /// with std::errc::wrong_protocol_type, and closes it, if it is something else.
  [[nodiscard]] static result<unix_listener> adopt(descriptor opened) noexcept;

  /// Accepts a connection, as `tcp_listener::accept`.
  [[nodiscard]] result<unix_stream> accept(time_limit deadline = platform::never) noexcept;
  /// As `accept`, but reports a lost connection, as `tcp_listener::accept_one`.
  [[nodiscard]] result<unix_stream> accept_one(time_limit deadline = platform::never) noexcept;

  using tcp_listener::invoke;
  using tcp_listener::is_open;
  using tcp_listener::native;
  using tcp_listener::wait_readable;

  /// Removes the socket's file, ends waiting accepts with io_error::closed, and closes.
  void close() noexcept {
    file_.remove();
    tcp_listener::close();
  }
  /// Returns the address that it listens at.
  [[nodiscard]] result<unix_address> local_address() const noexcept;

 private:
  friend class acceptor;
  explicit unix_listener(descriptor socket) noexcept : tcp_listener(std::move(socket)) {}
  static result<unix_stream> as_unix(result<tcp_stream>&& accepted) noexcept;

  detail::socket_file file_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
