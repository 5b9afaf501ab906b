// A connection of Unix sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "pirn/net/tcp_stream.hpp"
#include "pirn/net/unix_address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A connection of Unix sockets: a stream of bytes between two processes of this machine, which also carries file
/// descriptors. The calls that it shares with `tcp_stream` have the same declarations and are documented there. It is
/// as movable and as safe for fibers and threads.
class unix_stream : private tcp_stream {  // which differs only in addresses and options
 public:
  /// The process at the other end as it was when it connected, or called `listen` or `pair`.
  struct credentials {
    int process;          ///< its number; 0 if it lies outside of this process's namespace
    std::uint32_t user;   ///< its effective user
    std::uint32_t group;  ///< its effective group
  };
  /// Bytes and file descriptors that were received together.
  struct received {
    std::size_t size = 0;         ///< the bytes in the buffer; 0 is the end of the stream
    std::size_t descriptors = 0;  ///< how many descriptors have arrived and were stored
    /// Whether more descriptors were sent than there was a place for, or than this process may open. They are closed.
    bool descriptors_lost = false;
  };
  /// The largest number of descriptors that a call sends.
  static constexpr std::size_t max_descriptors = 253;

  /// Makes an unconnected stream: every call fails with io_error::closed.
  unix_stream() noexcept = default;
  /// Takes over a connected, non-blocking socket.
  explicit unix_stream(descriptor connected) noexcept : tcp_stream(std::move(connected)) {}

  /// Connects; waits while the listener's queue is full. Fails with std::errc::no_such_file_or_directory if the path
  /// does not exist, and with std::errc::connection_refused if no process listens there. A suspension point.
  [[nodiscard]] static result<unix_stream> connect(const unix_address& to,
                                                   time_limit deadline = platform::never) noexcept;
  /// Makes two connected streams without an address. Does not suspend.
  [[nodiscard]] static result<std::pair<unix_stream, unix_stream>> pair() noexcept;

  using tcp_stream::lend;
  using tcp_stream::read;
  using tcp_stream::read_exactly;
  using tcp_stream::send_file;
  using tcp_stream::wait_readable;
  using tcp_stream::write;
  using tcp_stream::write_some;

  using tcp_stream::close;
  using tcp_stream::invoke;
  using tcp_stream::is_open;
  using tcp_stream::native;
  using tcp_stream::shutdown;

  /// Writes at least one byte, and sends copies of the file descriptors `natives` with it. They remain open here; the
  /// caller keeps them open until this returns. The peer gets them with the first of the bytes, if it asks for them,
  /// and with `read` loses them. Fails with std::errc::invalid_argument without bytes or with more than
  /// `max_descriptors`, and with std::errc::bad_file_descriptor if one is not open; nothing is sent then.
  [[nodiscard]] result<std::size_t> send_descriptors(std::span<const int> natives, const void* data, std::size_t size,
                                                     time_limit deadline = platform::never) noexcept;
  /// Reads at least one byte, and stores the descriptors that were sent with it into the first objects of `into`. They
  /// are closed on exec and taken over as by `descriptor::adopt`: one that this process cannot wait for without harm to
  /// its standard input, output or error is closed, and its object is empty. Descriptors without a place are closed. A
  /// call never joins bytes that were sent with descriptors to later ones.
  [[nodiscard]] result<received> receive_descriptors(std::span<descriptor> into, void* buffer, std::size_t size,
                                                     time_limit deadline = platform::never) noexcept;

  /// Returns the process at the other end. The kernel vouches for it.
  [[nodiscard]] result<credentials> peer_credentials() const noexcept;
  /// Returns the address of this side.
  [[nodiscard]] result<unix_address> local_address() const noexcept;
  /// Returns the address of the peer.
  [[nodiscard]] result<unix_address> remote_address() const noexcept;

 private:
  friend class acceptor;
  friend class unix_listener;
  explicit unix_stream(tcp_stream&& socket) noexcept : tcp_stream(std::move(socket)) {}
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
