// A UDP socket: datagrams one by one, or several in one system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pirn/io/descriptor.hpp"
#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How a UDP socket is opened.
struct udp_options {
  /// Whether several sockets may share the port; the kernel spreads the senders over them.
  bool reuse_port = false;
  /// Whether a socket at the IPv6 "any" address also takes IPv4 datagrams.
  bool dual_stack = true;
  /// The bytes that the kernel holds for the receiver; datagrams beyond are lost. 0 leaves the kernel's choice
  /// (net.core.rmem_default). The kernel caps it at net.core.rmem_max.
  int receive_buffer = 0;
  /// The bytes that the kernel holds until they are sent; 0 leaves the kernel's choice (net.core.wmem_default).
  int send_buffer = 0;
};

/// A UDP socket. Each call sends or receives whole datagrams. Movable while no fiber uses it; several fibers may
/// receive and send at once, and each datagram goes to one of them. Deadlines, stops, threads and errors are as for
/// `descriptor`. Calls that send or receive are suspension points.
///
/// A socket with a peer (`connect`) takes datagrams from that peer only. If no process listens there, the peer's host
/// says so after a datagram was sent, and a later call fails once with std::errc::connection_refused. A socket without
/// a peer does not learn that.
class udp_socket {
 public:
  /// Describes a received datagram.
  struct received {
    std::size_t size = 0;    ///< the bytes in the buffer; 0 is a datagram without bytes
    bool truncated = false;  ///< whether the datagram was longer than the buffer; the rest is lost
    endpoint from;           ///< the sender
  };
  /// A datagram of a batch to receive.
  struct slot {
    void* buffer;      ///< where its bytes go
    std::size_t size;  ///< how many of them fit
    received what{};   ///< describes the received datagram
  };
  /// A datagram of a batch to send.
  struct datagram {
    const void* data;  ///< the first byte
    std::size_t size;  ///< the number of bytes
    endpoint to{};     ///< the receiver; `endpoint()`, the default, is the socket's peer
  };
  /// The largest number of datagrams that a call sends or receives.
  static constexpr std::size_t max_batch = 32;

  /// Makes a closed socket: every call fails with io_error::closed.
  udp_socket() noexcept = default;
  /// Opens a socket at `at`; port 0 takes any free port (see `local_endpoint`). Does not suspend.
  [[nodiscard]] static result<udp_socket> bind(const endpoint& at, const udp_options& options = {}) noexcept;
  /// Opens a socket at any free port, whose peer is `to`. Does not suspend.
  [[nodiscard]] static result<udp_socket> connect(const endpoint& to, const udp_options& options = {}) noexcept;
  /// Takes over a non-blocking UDP socket that was opened elsewhere. Fails with std::errc::wrong_protocol_type, and
  /// closes it, if it is something else.
  [[nodiscard]] static result<udp_socket> adopt(descriptor opened) noexcept;

  /// Makes `to` the peer of a bound socket. Does not suspend.
  result<> set_peer(const endpoint& to) noexcept;

  /// Receives one datagram.
  [[nodiscard]] result<received> receive(void* buffer, std::size_t size,
                                         time_limit deadline = platform::never) noexcept;
  /// Receives at least one datagram, and all others that have arrived and find a slot, in one system call. Returns how
  /// many slots it has filled. A call fills at most `max_batch` slots.
  [[nodiscard]] result<std::size_t> receive_batch(std::span<slot> into, time_limit deadline = platform::never) noexcept;
  /// Sends one datagram to the peer. Waits only for room in the kernel. Fails with std::errc::message_size if the
  /// datagram is too long for UDP, and with std::errc::destination_address_required if there is no peer.
  result<> send(const void* data, std::size_t size, time_limit deadline = platform::never) noexcept;
  result<> send(std::string_view data, time_limit deadline = platform::never) noexcept {
    return send(data.data(), data.size(), deadline);
  }
  /// As `send`, but to `to`, whether the socket has a peer or not.
  result<> send_to(const endpoint& to, const void* data, std::size_t size,
                   time_limit deadline = platform::never) noexcept;
  result<> send_to(const endpoint& to, std::string_view data, time_limit deadline = platform::never) noexcept {
    return send_to(to, data.data(), data.size(), deadline);
  }
  /// Sends at least one of the datagrams, and as many as there is room for, in one system call. Returns how many. A
  /// call sends at most `max_batch`. A datagram that cannot be sent is an error only if it is the first one left.
  [[nodiscard]] result<std::size_t> send_batch(std::span<const datagram> what,
                                               time_limit deadline = platform::never) noexcept;

  /// Waits until there may be a datagram to receive.
  [[nodiscard]] result<> wait_readable(time_limit deadline = platform::never) noexcept {
    return socket_.wait(io_direction::read, deadline);
  }
  /// Ends pending operations with io_error::closed, then closes.
  void close() noexcept { socket_.close(); }
  /// Whether it was not closed.
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  /// Returns the address and port of this socket.
  [[nodiscard]] result<endpoint> local_endpoint() const noexcept;
  /// Returns the address and port of the peer. Fails with std::errc::not_connected without one.
  [[nodiscard]] result<endpoint> remote_endpoint() const noexcept;
  /// Returns the file descriptor's number, as `descriptor::native`.
  [[nodiscard]] int native() const noexcept { return socket_.native(); }
  /// Makes a system call on the descriptor, as `descriptor::invoke`.
  [[nodiscard]] result<std::int64_t> invoke(descriptor::syscall call, void* argument) const noexcept {
    return socket_.invoke(call, argument);
  }

 private:
  explicit udp_socket(descriptor socket) noexcept : socket_(std::move(socket)) {}
  result<> send_one(const endpoint* to, const void* data, std::size_t size, platform::time_point deadline) noexcept;

  descriptor socket_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
