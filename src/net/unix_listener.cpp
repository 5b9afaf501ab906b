// Listening Unix sockets: the files of their paths, and accepting.
#include "pirn/net/unix_listener.hpp"

#include "net/unix_socket.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

result<> bind_at(const descriptor& socket, const unix_address& at, const unix_listen_options& options) noexcept {
  // The file gets its permissions from the socket as it is made: there is no moment at which it has others.
  if (const result<> set =
          detail::call_on(socket, [&](int native) { return platform::system::fchmod(native, options.permissions); });
      !set) {
    return set;
  }
  return detail::bind_to_path(socket, SOCK_STREAM, at, options.replace_stale);
}

}  // namespace

result<unix_listener> unix_listener::listen(const unix_address& at, const unix_listen_options& options) noexcept {
  auto socket = detail::open_socket(AF_UNIX, SOCK_STREAM);
  if (!socket) {
    return fail(socket.error());
  }
  if (const result<> bound = bind_at(*socket, at, options); !bound) {
    return fail(bound.error());
  }
  unix_listener made(std::move(*socket));
  made.file_ = detail::socket_file(at);
  if (const result<> listening =
          detail::call_on(made.socket_, [&](int native) { return platform::system::listen(native, options.backlog); });
      !listening) {
    return fail(listening.error());
  }
  return made;
}

result<unix_listener> unix_listener::adopt(descriptor opened) noexcept {
  if (const result<> right = detail::check_kind(opened, false, SOCK_STREAM, true); !right) {
    return fail(right.error());
  }
  return unix_listener(std::move(opened));
}

result<unix_stream> unix_listener::accept(time_limit deadline) noexcept {
  return as_unix(tcp_listener::accept(deadline));
}
result<unix_stream> unix_listener::accept_one(time_limit deadline) noexcept {
  return as_unix(tcp_listener::accept_one(deadline));
}
result<unix_stream> unix_listener::as_unix(result<tcp_stream>&& accepted) noexcept {
  if (!accepted) {
    return fail(accepted.error());
  }
  return unix_stream(std::move(*accepted));
}

result<unix_address> unix_listener::local_address() const noexcept {
  return detail::unix_name_of(socket_, platform::system::getsockname);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
