// Listening sockets: their options, accepting, and the kinds of accept failures.
#include "pirn/net/tcp_listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>

#include "net/socket.hpp"
#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

using detail::last_error;

result<tcp_listener> tcp_listener::listen(const endpoint& at, const listen_options& options) noexcept {
  auto socket = detail::open_socket(at.address);
  if (!socket) {
    return fail(socket.error());
  }
  const detail::option wishes[] = {
      {options.reuse_address, SOL_SOCKET, SO_REUSEADDR, 1},
      {options.reuse_port, SOL_SOCKET, SO_REUSEPORT, 1},
      {at.address.is_v6(), IPPROTO_IPV6, IPV6_V6ONLY, options.dual_stack ? 0 : 1},
      // Accepted sockets inherit these: fewer system calls for each connection.
      {options.delay == tcp_stream::delay::none, IPPROTO_TCP, TCP_NODELAY, 1},
      {options.receive_buffer != 0, SOL_SOCKET, SO_RCVBUF, options.receive_buffer},
      {options.send_buffer != 0, SOL_SOCKET, SO_SNDBUF, options.send_buffer},
  };
  if (const result<> set = detail::set_options(*socket, wishes); !set) {
    return fail(set.error());
  }
  if (const result<> bound = detail::call_with_address(*socket, at, platform::system::bind); !bound) {
    return fail(bound.error());
  }
  if (platform::system::listen(socket->native(), options.backlog) != 0) {
    return fail(last_error());
  }
  return tcp_listener(std::move(*socket));
}

result<tcp_listener> tcp_listener::adopt(descriptor opened) noexcept {
  if (const result<> right = detail::check_kind(opened, true, SOCK_STREAM, true); !right) {
    return fail(right.error());
  }
  return tcp_listener(std::move(opened));
}

accept_failure kind_of_accept_failure(const std::error_code& error) noexcept {
  if (error.category() != std::system_category() && error.category() != std::generic_category()) {
    return accept_failure::listener;
  }
  switch (error.value()) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSR:
      return accept_failure::shortage;
    case EBADF:
    case EFAULT:
    case EINVAL:
    case ENOTSOCK:
      return accept_failure::listener;
    default:
      // Linux reports errors of the connection in the queue, and its refusal by a firewall or a security module.
      return accept_failure::connection;
  }
}

result<tcp_stream> tcp_listener::accept_one(time_limit deadline) noexcept {
  const auto accepted = perform(operation::accept(socket_), deadline);
  if (!accepted) {
    return fail(accepted.error());
  }
  return tcp_stream(descriptor(static_cast<int>(*accepted)));
}

result<tcp_stream> tcp_listener::accept(time_limit deadline) noexcept {
  constexpr int max_passed_over = 32;
  for (int passed_over = 0;; ++passed_over) {
    auto accepted = accept_one(deadline);
    if (accepted || passed_over == max_passed_over ||
        kind_of_accept_failure(accepted.error()) != accept_failure::connection) {
      return accepted;
    }
  }
}

result<endpoint> tcp_listener::local_endpoint() const noexcept {
  return detail::name_of(socket_, platform::system::getsockname);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
