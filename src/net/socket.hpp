// What stream and listener share.
#pragma once

#include <cerrno>
#include <cstdint>

#include "detail/system.hpp"
#include "pirn/io/descriptor.hpp"
#include "pirn/net/address.hpp"

namespace pirn::inline PIRN_ABI::detail {

// Neither is inlined: where a caller waits in between, which may migrate it, the address of errno is not the same
// again.
PIRN_NOINLINE inline std::error_code last_error() noexcept { return {errno, std::system_category()}; }
PIRN_NOINLINE inline std::int64_t outcome_of(std::int64_t returned) noexcept {
  return returned >= 0 ? returned : -std::int64_t{errno};
}

/// A non-blocking TCP socket of the address's family.
inline result<descriptor> open_socket(const ip_address& address) noexcept {
  descriptor made(
      platform::system::socket(address.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.is_open()) {
    return fail(last_error());
  }
  return made;
}

inline result<> set_option(const descriptor& socket, int level, int name, int value) noexcept {
  if (platform::system::setsockopt(socket.native(), level, name, &value, sizeof value) != 0) {
    return fail(last_error());
  }
  return {};
}

using name_call = int (*)(int, ::sockaddr*, ::socklen_t*);
inline result<endpoint> name_of(const descriptor& socket, name_call call) noexcept {
  if (!socket.is_open()) {
    return fail(io_error::closed);
  }
  ::sockaddr_storage native{};
  ::socklen_t size = sizeof native;
  if (call(socket.native(), reinterpret_cast<::sockaddr*>(&native), &size) != 0) {
    return fail(last_error());
  }
  return from_native(native);
}

}  // namespace pirn::inline PIRN_ABI::detail
