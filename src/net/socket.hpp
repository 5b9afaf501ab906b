// Helpers that the sockets share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>

#include "detail/system.hpp"
#include "io/attempt.hpp"
#include "pirn/io/descriptor.hpp"
#include "pirn/net/address.hpp"
#include "pirn/net/unix_address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Opens a non-blocking socket.
inline result<descriptor> open_socket(int family, int type) noexcept {
  descriptor made(platform::system::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.is_open()) {
    return fail(last_error());
  }
  return made;
}
/// Opens a socket of the address's family, for TCP unless `type` says otherwise.
inline result<descriptor> open_socket(const ip_address& address, int type = SOCK_STREAM) noexcept {
  return open_socket(address.is_v6() ? AF_INET6 : AF_INET, type);
}

/// Makes one call that cannot block, and keeps the socket open meanwhile. `call(native)` returns as the system call
/// does.
template <class Call>
result<> call_on(const descriptor& socket, Call call) noexcept {
  const auto done = socket.invoke(
      [](int native, void* argument) noexcept { return result_of_call((*static_cast<Call*>(argument))(native)); },
      &call);
  if (!done) {
    return fail(done.error());
  }
  return {};
}

inline result<> set_option(const descriptor& socket, int level, int name, int value) noexcept {
  return call_on(socket,
                 [&](int native) { return platform::system::setsockopt(native, level, name, &value, sizeof value); });
}

/// An option that a socket gets before it is bound or connected.
struct option {
  bool wanted;
  int level, name, value;
};
inline result<> set_options(const descriptor& socket, std::span<const option> all) noexcept {
  for (const option& each : all) {
    if (each.wanted) {
      if (const result<> set = set_option(socket, each.level, each.name, each.value); !set) {
        return set;
      }
    }
  }
  return {};
}

inline result<int> get_option(const descriptor& socket, int level, int name) noexcept {
  int value = 0;
  ::socklen_t size = sizeof value;
  const auto got =
      call_on(socket, [&](int native) { return platform::system::getsockopt(native, level, name, &value, &size); });
  if (!got) {
    return fail(got.error());
  }
  return value;
}

/// Binds the socket, or connects one that cannot block, as `call` says. An `Address` is an endpoint or a unix_address.
template <class Address>
result<> call_with_address(const descriptor& socket, const Address& at,
                           int (*call)(int, const ::sockaddr*, ::socklen_t)) noexcept {
  ::sockaddr_storage native;
  const ::socklen_t size = to_native(at, native);
  return call_on(socket, [&](int number) { return call(number, reinterpret_cast<const ::sockaddr*>(&native), size); });
}

/// Fails unless it is one of the given type, whose family is IPv4 or IPv6 or else Unix.
inline result<> check_kind(const descriptor& socket, bool internet, int type, bool listens) noexcept {
  const auto family = get_option(socket, SOL_SOCKET, SO_DOMAIN);
  if (!family) {
    return fail(family.error());
  }
  const bool known = internet ? *family == AF_INET || *family == AF_INET6 : *family == AF_UNIX;
  if (!known || get_option(socket, SOL_SOCKET, SO_TYPE) != type ||
      get_option(socket, SOL_SOCKET, SO_ACCEPTCONN).value_or(0) != (listens ? 1 : 0)) {
    return fail(std::make_error_code(std::errc::wrong_protocol_type));
  }
  return {};
}

/// Waits where the kernel reports nothing, before another look: 50 us at first, 10 ms at last. A stop or a deadline
/// that ends the pause must end the next look too.
class pauses {
 public:
  explicit pauses(platform::time_point deadline) noexcept : deadline_(deadline) {}
  void wait() noexcept {
    static_cast<void>(this_fiber::sleep_until(std::min(deadline_, platform::time_point(time_limit(next_)))));
    next_ = std::min(2 * next_, longest);
  }

 private:
  static constexpr platform::duration longest = std::chrono::milliseconds(10);
  platform::time_point deadline_;
  platform::duration next_ = std::chrono::microseconds(50);
};

/// Asks the kernel for an address of the socket: getsockname or getpeername.
using name_call = int (*)(int, ::sockaddr*, ::socklen_t*);
inline result<> ask_for_name(const descriptor& socket, name_call call, ::sockaddr_storage& name,
                             ::socklen_t& size) noexcept {
  size = sizeof name;
  return call_on(socket, [&](int native) { return call(native, reinterpret_cast<::sockaddr*>(&name), &size); });
}
inline result<endpoint> name_of(const descriptor& socket, name_call call) noexcept {
  ::sockaddr_storage name{};
  ::socklen_t size;
  if (const result<> named = ask_for_name(socket, call, name, size); !named) {
    return fail(named.error());
  }
  return from_native(name);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
