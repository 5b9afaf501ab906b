// Parses and prints addresses, and converts them to and from the kernel's form.
#include "pirn/net/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

result<ip_address> ip_address::parse(std::string_view text) {
  if (text == "localhost") {
    return loopback_v4();
  }
  if (text.find('\0') != text.npos) {
    return fail(io_error::bad_syntax);
  }
  std::uint32_t scope = 0;
  const std::size_t percent = text.find('%');
  const std::string literal(text.substr(0, percent));
  std::array<std::uint8_t, 4> short_bytes{};
  if (percent == std::string_view::npos && ::inet_pton(AF_INET, literal.c_str(), short_bytes.data()) == 1) {
    return v4(short_bytes);
  }
  std::array<std::uint8_t, 16> long_bytes{};
  if (::inet_pton(AF_INET6, literal.c_str(), long_bytes.data()) != 1) {
    return fail(io_error::bad_syntax);
  }
  if (percent != std::string_view::npos) {
    const std::string zone(text.substr(percent + 1));
    const auto [end, error] = std::from_chars(zone.data(), zone.data() + zone.size(), scope);
    if (error != std::errc{} || end != zone.data() + zone.size()) {
      scope = ::if_nametoindex(zone.c_str());
    }
    if (scope == 0) {
      return fail(io_error::bad_syntax);
    }
  }
  return v6(long_bytes, scope);
}

std::string ip_address::to_string() const {
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(is_v6_ ? AF_INET6 : AF_INET, bytes_.data(), text, sizeof text);
  return scope_ == 0 ? std::string(text) : text + ('%' + std::to_string(scope_));
}

result<endpoint> endpoint::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return fail(io_error::bad_syntax);
  }
  endpoint made;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, made.port);
  if (error != std::errc{} || stopped != end) {
    return fail(io_error::bad_syntax);
  }
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  const auto address = ip_address::parse(host);
  if (!address || address->is_v6() != bracketed) {
    return fail(io_error::bad_syntax);
  }
  made.address = *address;
  return made;
}

std::string endpoint::to_string() const {
  const std::string host = address.to_string();
  return (address.is_v6() ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

namespace detail {

std::uint32_t to_native(const endpoint& from, ::sockaddr_storage& to) noexcept {
  std::memset(&to, 0, sizeof to);
  if (from.address.is_v6()) {
    auto& native = reinterpret_cast<sockaddr_in6&>(to);
    native.sin6_family = AF_INET6;
    native.sin6_port = htons(from.port);
    native.sin6_scope_id = from.address.scope();
    std::memcpy(&native.sin6_addr, from.address.bytes().data(), 16);
    return sizeof native;
  }
  auto& native = reinterpret_cast<sockaddr_in&>(to);
  native.sin_family = AF_INET;
  native.sin_port = htons(from.port);
  std::memcpy(&native.sin_addr, from.address.bytes().data(), 4);
  return sizeof native;
}

endpoint from_native(const ::sockaddr_storage& from) noexcept {
  if (from.ss_family == AF_INET6) {
    const auto& native = reinterpret_cast<const sockaddr_in6&>(from);
    std::array<std::uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), &native.sin6_addr, 16);
    return {ip_address::v6(bytes, native.sin6_scope_id), ntohs(native.sin6_port)};
  }
  const auto& native = reinterpret_cast<const sockaddr_in&>(from);
  std::array<std::uint8_t, 4> bytes{};
  std::memcpy(bytes.data(), &native.sin_addr, 4);
  return {ip_address::v4(bytes), ntohs(native.sin_port)};
}

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
