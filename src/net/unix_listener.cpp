// Listening Unix sockets: the files of their paths, and accepting.
#include "pirn/net/unix_listener.hpp"

#include "net/unix_socket.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

/// Whether the file at the path is that of a socket at which no process listens.
bool is_stale(const unix_address& at) noexcept {
  struct ::stat about;
  if (!at.is_path() || platform::system::lstat(at.c_str(), &about) != 0 || !S_ISSOCK(about.st_mode)) {
    return false;
  }
  const auto probe = detail::open_socket(AF_UNIX, SOCK_STREAM);
  const auto answer = probe ? detail::call_with_address(*probe, at, platform::system::connect) : fail(probe.error());
  return !answer && answer.error() == std::errc::connection_refused;
}

result<> bind_at(const descriptor& socket, const unix_address& at, const unix_listen_options& options) noexcept {
  // The file gets its permissions from the socket as it is made: there is no moment at which it has others.
  if (const result<> set =
          detail::call_on(socket, [&](int native) { return platform::system::fchmod(native, options.permissions); });
      !set) {
    return set;
  }
  result<> bound = detail::call_with_address(socket, at, platform::system::bind);
  if (!bound && bound.error() == std::errc::address_in_use && options.replace_stale && is_stale(at)) {
    platform::system::unlink(at.c_str());
    bound = detail::call_with_address(socket, at, platform::system::bind);
  }
  return bound;
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
