// Helpers that tcp_stream and tcp_listener share.
#pragma once

#include <cerrno>
#include <cstdint>

#include "detail/system.hpp"
#include "pirn/io/descriptor.hpp"
#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

// Not inlined: a caller that suspends in between may migrate to another thread, where errno has another address.
PIRN_NOINLINE inline std::error_code last_error() noexcept { return {errno, std::system_category()}; }
PIRN_NOINLINE inline std::int64_t outcome_of(std::int64_t returned) noexcept {
  return returned >= 0 ? returned : -std::int64_t{errno};
}

/// Opens a non-blocking TCP socket of the address's family.
inline result<descriptor> open_socket(const ip_address& address) noexcept {
  descriptor made(
      platform::system::socket(address.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.is_open()) {
    return fail(last_error());
  }
  return made;
}

/// Makes one call that cannot block, and keeps the socket open meanwhile. `call(native)` returns as the system call
/// does.
template <class Call>
result<> call_on(const descriptor& socket, Call call) noexcept {
  const auto done = socket.invoke(
      [](int native, void* argument) noexcept { return outcome_of((*static_cast<Call*>(argument))(native)); }, &call);
  if (!done) {
    return fail(done.error());
  }
  return {};
}

inline result<> set_option(const descriptor& socket, int level, int name, int value) noexcept {
  return call_on(socket,
                 [&](int native) { return platform::system::setsockopt(native, level, name, &value, sizeof value); });
}

using name_call = int (*)(int, ::sockaddr*, ::socklen_t*);
inline result<endpoint> name_of(const descriptor& socket, name_call call) noexcept {
  ::sockaddr_storage name{};
  ::socklen_t size = sizeof name;
  const auto named =
      call_on(socket, [&](int native) { return call(native, reinterpret_cast<::sockaddr*>(&name), &size); });
  if (!named) {
    return fail(named.error());
  }
  return from_native(name);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
