// TCP connections: connecting, writing, sending files, and socket options.
#include "pirn/net/tcp_stream.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>

#include "io/sigpipe.hpp"
#include "net/socket.hpp"
#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

using detail::counted;
using detail::result_of_call;

constexpr std::size_t max_parts = 16;

/// Whether a connection's ends are one socket. This happens if no process listens at a port of this machine and the
/// kernel chooses that very port for the connecting socket: TCP takes that for a simultaneous open (RFC 9293, 3.5).
bool speaks_to_itself(const tcp_stream& stream, std::uint16_t port) noexcept {
  const auto own = stream.local_endpoint();
  return own && own->port == port && stream.remote_endpoint() == own;
}

/// Whether neither side can send anything any more.
bool is_over(int native) noexcept {
  ::tcp_info about{};
  ::socklen_t size = sizeof about;
  return platform::system::getsockopt(native, IPPROTO_TCP, TCP_INFO, &about, &size) == 0 &&
         about.tcpi_state == TCP_CLOSE;
}

result<> set_sizes(const descriptor& socket, int receive, int send) noexcept {
  const detail::option sizes[] = {{receive != 0, SOL_SOCKET, SO_RCVBUF, receive},
                                  {send != 0, SOL_SOCKET, SO_SNDBUF, send}};
  return detail::set_options(socket, sizes);
}

result<> prepare(const descriptor& socket, const connect_options& options) noexcept {
  const detail::option at_once[] = {{options.delay == tcp_stream::delay::none, IPPROTO_TCP, TCP_NODELAY, 1}};
  result<> done = detail::set_options(socket, at_once);
  if (done) {
    done = set_sizes(socket, options.receive_buffer, options.send_buffer);
  }
  if (done && options.source) {
    const bool any_port = options.source->port == 0;
    const detail::option wishes[] = {
        {any_port, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1},  // a port may serve connections to several peers
        {!any_port, SOL_SOCKET, SO_REUSEADDR, 1},            // old connections of the port may linger
    };
    done = detail::set_options(socket, wishes);
    if (done) {
      done = detail::call_with_address(socket, *options.source, platform::system::bind);
    }
  }
  return done;
}

/// Returns a time in seconds, rounded up, as a number that the kernel refuses if it is out of range.
int seconds_in(platform::duration time) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(time).count(), -1, 1 << 20));
}

}  // namespace

result<tcp_stream> tcp_stream::connect(const endpoint& to, time_limit deadline) noexcept {
  return connect(to, connect_options{}, deadline);
}

result<tcp_stream> tcp_stream::connect(const endpoint& to, const connect_options& options,
                                       time_limit deadline) noexcept {
  auto socket = detail::open_socket(to.address);
  if (!socket) {
    return fail(socket.error());
  }
  if (const result<> prepared = prepare(*socket, options); !prepared) {
    return fail(prepared.error());
  }
  ::sockaddr_storage native;
  const ::socklen_t size = detail::to_native(to, native);
  if (const auto done =
          perform(operation::connect(*socket, reinterpret_cast<const ::sockaddr*>(&native), size), deadline);
      !done) {
    return fail(done.error());
  }
  tcp_stream made(std::move(*socket));
  if (speaks_to_itself(made, to.port)) {
    made.close_with_reset();  // else it would keep a listener from the port for a minute
    return fail({ECONNREFUSED, std::system_category()});
  }
  return made;
}

result<> tcp_stream::read_exactly(void* buffer, std::size_t size, time_limit deadline) noexcept {
  auto* next = static_cast<std::byte*>(buffer);
  while (size > 0) {
    const auto got = read(next, size, deadline);
    if (!got) {
      return fail(got.error());
    }
    if (*got == 0) {
      return fail(io_error::end_of_stream);
    }
    next += *got;
    size -= *got;
  }
  return {};
}

result<std::size_t> tcp_stream::write_some(const void* buffer, std::size_t size, time_limit deadline) noexcept {
  return counted(perform(operation::send(socket_, buffer, size), deadline));
}

result<> tcp_stream::write(const void* buffer, std::size_t size, time_limit deadline) noexcept {
  const auto* next = static_cast<const std::byte*>(buffer);
  while (size > 0) {
    const auto put = write_some(next, size, deadline);
    if (!put) {
      return fail(put.error());
    }
    next += *put;
    size -= *put;
  }
  return {};
}

result<std::size_t> tcp_stream::write_from(std::span<const const_buffer> parts, std::size_t skip,
                                           platform::time_point deadline) noexcept {
  ::iovec memory[max_parts];
  const std::size_t count = detail::to_native(parts, memory).size();
  memory[0] = {static_cast<std::byte*>(memory[0].iov_base) + skip, memory[0].iov_len - skip};
  ::msghdr message{};
  message.msg_iov = memory;
  message.msg_iovlen = count;
  return counted(perform(operation::send_message(socket_, message), deadline));
}

result<std::size_t> tcp_stream::write_some(std::span<const const_buffer> parts, time_limit deadline) noexcept {
  return parts.empty() ? write_some("", 0, deadline) : write_from(parts, 0, deadline);
}

result<> tcp_stream::write(std::span<const const_buffer> parts, time_limit deadline) noexcept {
  std::size_t skip = 0;  // bytes of the first part that have been sent
  while (!parts.empty()) {
    const auto put = write_from(parts, skip, deadline);
    if (!put) {
      return fail(put.error());
    }
    skip += *put;
    while (!parts.empty() && skip >= parts.front().size) {
      skip -= parts.front().size;
      parts = parts.subspan(1);
    }
  }
  return {};
}

result<std::size_t> tcp_stream::send_file(int file, std::uint64_t offset, std::size_t size,
                                          time_limit deadline) noexcept {
  struct source {
    int file;
    ::off_t offset;
    std::size_t size;
  } request{file, static_cast<::off_t>(offset), size};
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    const auto& from = *static_cast<const source*>(argument);
    return detail::without_sigpipe(from.size, [&] {
      ::off_t position = from.offset;
      return result_of_call(platform::system::sendfile(native, from.file, &position, from.size));
    });
  };
  return counted(socket_.perform(io_direction::write, deadline, call, &request));
}

result<> tcp_stream::shutdown(shutdown_half which) noexcept {
  const int how = detail::to_native(which);
  return detail::call_on(socket_, [how](int native) { return platform::system::shutdown(native, how); });
}

void tcp_stream::close_with_reset() noexcept {
  const descriptor::syscall call = [](int native, void*) noexcept {
    const ::linger at_once{.l_onoff = 1, .l_linger = 0};
    return result_of_call(platform::system::setsockopt(native, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
  };
  static_cast<void>(socket_.invoke(call, nullptr));  // it fails only if there is nothing to reset
  socket_.close();
}

result<std::size_t> tcp_stream::unacknowledged() noexcept {
  int bytes = 0;
  const descriptor::syscall call = [](int native, void* argument) noexcept -> std::int64_t {
    // SIOCOUTQ still counts bytes that a reset has left unacknowledged.
    auto* const counted_bytes = static_cast<int*>(argument);
    pollfd interest{native, 0, 0};
    const bool has_news = platform::system::poll(&interest, 1, 0) > 0;
    if (has_news && (interest.revents & POLLERR) != 0) {
      return -ECONNRESET;
    }
    const std::int64_t asked = result_of_call(platform::system::ioctl(native, SIOCOUTQ, counted_bytes));
    // A call that reported the reset has taken the error.
    const bool is_reset =
        asked >= 0 && *counted_bytes > 0 && has_news && (interest.revents & POLLHUP) != 0 && is_over(native);
    return is_reset ? -ECONNRESET : asked;
  };
  if (const auto done = socket_.invoke(call, &bytes); !done) {
    return fail(done.error());
  }
  return static_cast<std::size_t>(bytes);
}

result<> tcp_stream::set_delay(delay what) noexcept {
  return detail::set_option(socket_, IPPROTO_TCP, TCP_NODELAY, what == delay::none ? 1 : 0);
}

result<> tcp_stream::set_unsent_limit(int bytes) noexcept {
  if (!socket_.is_open()) {
    return fail(io_error::closed);
  }
  return detail::set_option(socket_, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

result<> tcp_stream::set_keep_alive(std::optional<keep_alive> how) noexcept {
  const keep_alive times = how.value_or(keep_alive{});
  const detail::option wishes[] = {
      {how.has_value(), IPPROTO_TCP, TCP_KEEPIDLE, seconds_in(times.idle)},
      {how.has_value(), IPPROTO_TCP, TCP_KEEPINTVL, seconds_in(times.interval)},
      {how.has_value(), IPPROTO_TCP, TCP_KEEPCNT, times.probes},
      {true, SOL_SOCKET, SO_KEEPALIVE, how ? 1 : 0},
  };
  return detail::set_options(socket_, wishes);
}

result<> tcp_stream::set_buffers(int receive, int send) noexcept { return set_sizes(socket_, receive, send); }

result<> tcp_stream::linger(time_limit deadline) noexcept {
  if (const result<> ended = shutdown(shutdown_half::write); !ended) {
    return ended;
  }
  for (detail::pauses between(deadline);; between.wait()) {
    if (const auto left = unacknowledged(); !left) {
      return fail(left.error());
    } else if (*left == 0) {
      return {};
    }
    if (const std::error_code reason = detail::reason_to_stop(deadline)) {
      return fail(reason);
    }
  }
}

result<endpoint> tcp_stream::local_endpoint() const noexcept {
  return detail::name_of(socket_, platform::system::getsockname);
}
result<endpoint> tcp_stream::remote_endpoint() const noexcept {
  return detail::name_of(socket_, platform::system::getpeername);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
