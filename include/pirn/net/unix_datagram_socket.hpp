// Datagrams between Unix sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "pirn/io/descriptor.hpp"
#include "pirn/net/detail/socket_file.hpp"
#include "pirn/net/unix_address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A Unix socket for datagrams, which arrive in order and are not lost: a sender waits while the receiver's queue is
/// full (net.unix.max_dgram_qlen). Movable while no fiber uses it. Deadlines, stops, threads and errors are as for
/// `descriptor`. Calls that send or receive are suspension points. The file of a path is removed when the socket is
/// closed or destroyed, but only by the process that made it.
class unix_datagram_socket {
 public:
  /// How a socket with an address is opened.
  struct options {
    /// Whether to replace a socket's file at the path that no open socket has. Of two programs that do so at the same
    /// moment, the later one has the path.
    bool replace_stale = true;
  };
  /// Describes a received datagram.
  struct received {
    std::size_t size = 0;           ///< the bytes in the buffer
    bool truncated = false;         ///< whether the datagram was longer than the buffer; the rest is lost
    std::size_t descriptors = 0;    ///< as in unix_stream::received
    bool descriptors_lost = false;  ///< as in unix_stream::received
    unix_address from;              ///< the sender, if it is bound
  };

  /// Makes a closed socket: every call fails with io_error::closed.
  unix_datagram_socket() noexcept = default;
  /// Opens a socket at `at`; without an address the kernel chooses an abstract one (see `local_address`). Fails with
  /// std::errc::address_in_use if there is a file at the path (but see `options`), or a socket with the abstract name.
  /// Does not suspend.
  [[nodiscard]] static result<unix_datagram_socket> bind(const unix_address& at, const options& how) noexcept;
  [[nodiscard]] static result<unix_datagram_socket> bind(const unix_address& at) noexcept {
    return bind(at, options{});
  }
  /// Opens a socket without an address, whose peer is `to`. Does not suspend.
  [[nodiscard]] static result<unix_datagram_socket> connect(const unix_address& to) noexcept;
  /// Makes two sockets that are each other's peers and have no address. Does not suspend.
  [[nodiscard]] static result<std::pair<unix_datagram_socket, unix_datagram_socket>> pair() noexcept;
  /// Takes over a non-blocking Unix datagram socket that was opened elsewhere; its file stays when it is closed. Fails
  /// with std::errc::wrong_protocol_type, and closes it, if it is something else.
  [[nodiscard]] static result<unix_datagram_socket> adopt(descriptor opened) noexcept;

  /// Makes `to` the peer of a bound socket. Does not suspend.
  result<> set_peer(const unix_address& to) noexcept;

  /// Receives one datagram. Descriptors that were sent with it are closed.
  [[nodiscard]] result<received> receive(void* buffer, std::size_t size,
                                         time_limit deadline = platform::never) noexcept {
    return receive_descriptors({}, buffer, size, deadline);
  }
  /// As `receive`, but stores the descriptors that were sent with it as unix_stream::receive_descriptors does.
  [[nodiscard]] result<received> receive_descriptors(std::span<descriptor> into, void* buffer, std::size_t size,
                                                     time_limit deadline = platform::never) noexcept;
  /// Sends one datagram to the peer; waits while its queue is full. Fails with std::errc::not_connected if there is no
  /// peer, with std::errc::connection_refused once the peer is closed, and with std::errc::message_size if the datagram
  /// is longer than the send buffer.
  result<> send(const void* data, std::size_t size, time_limit deadline = platform::never) noexcept {
    return send_descriptors({}, data, size, deadline);
  }
  result<> send(std::string_view data, time_limit deadline = platform::never) noexcept {
    return send(data.data(), data.size(), deadline);
  }
  /// As `send`, but to `to`. The kernel does not report when a full queue has room, so the fiber looks again after 50
  /// us at first and every 10 ms later; use a peer where that matters.
  result<> send_to(const unix_address& to, const void* data, std::size_t size,
                   time_limit deadline = platform::never) noexcept;
  result<> send_to(const unix_address& to, std::string_view data, time_limit deadline = platform::never) noexcept {
    return send_to(to, data.data(), data.size(), deadline);
  }
  /// As `send`, but with copies of the file descriptors `natives`, as unix_stream::send_descriptors.
  result<> send_descriptors(std::span<const int> natives, const void* data, std::size_t size,
                            time_limit deadline = platform::never) noexcept;

  /// Waits until there may be a datagram to receive.
  [[nodiscard]] result<> wait_readable(time_limit deadline = platform::never) noexcept {
    return socket_.wait(io_direction::read, deadline);
  }
  /// Removes the socket's file, ends pending operations with io_error::closed, and closes.
  void close() noexcept {
    file_.remove();
    socket_.close();
  }
  /// Whether it was not closed.
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  /// Returns the address of this socket.
  [[nodiscard]] result<unix_address> local_address() const noexcept;
  /// Returns the file descriptor's number, as `descriptor::native`.
  [[nodiscard]] int native() const noexcept { return socket_.native(); }
  /// Makes a system call on the descriptor, as `descriptor::invoke`.
  [[nodiscard]] result<std::int64_t> invoke(descriptor::syscall call, void* argument) const noexcept {
    return socket_.invoke(call, argument);
  }

 private:
  explicit unix_datagram_socket(descriptor socket) noexcept : socket_(std::move(socket)) {}

  descriptor socket_;
  detail::socket_file file_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
