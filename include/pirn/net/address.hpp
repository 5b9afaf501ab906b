// Addresses of the internet protocols, as values.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "pirn/io/error.hpp"

struct sockaddr_storage;

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// An IPv4 or IPv6 address. The default is 0.0.0.0.
class ip_address {
 public:
  constexpr ip_address() noexcept = default;
  /// Makes an IPv4 address of its four bytes, in network order.
  static constexpr ip_address v4(std::array<std::uint8_t, 4> bytes) noexcept {
    ip_address made;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      made.bytes_[i] = bytes[i];
    }
    return made;
  }
  /// Makes an IPv6 address. `scope` is the index of the interface that a link-local address belongs to.
  static constexpr ip_address v6(std::array<std::uint8_t, 16> bytes, std::uint32_t scope = 0) noexcept {
    ip_address made;
    made.bytes_ = bytes;
    made.scope_ = scope;
    made.is_v6_ = true;
    return made;
  }
  /// Returns 0.0.0.0.
  static constexpr ip_address any_v4() noexcept { return {}; }
  /// Returns `::`.
  static constexpr ip_address any_v6() noexcept { return v6({}); }
  /// Returns 127.0.0.1.
  static constexpr ip_address loopback_v4() noexcept { return v4({127, 0, 0, 1}); }
  /// Returns `::1`.
  static constexpr ip_address loopback_v6() noexcept { return v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}); }

  /// Parses "192.0.2.1", "2001:db8::1", "fe80::1%eth0" or "localhost" (127.0.0.1); other names are not looked up. Fails
  /// with io_error::bad_syntax.
  static result<ip_address> parse(std::string_view text);

  /// Whether it is an IPv6 address.
  [[nodiscard]] constexpr bool is_v6() const noexcept { return is_v6_; }
  /// Returns the bytes in network order; an IPv4 address has the first four.
  [[nodiscard]] constexpr const std::array<std::uint8_t, 16>& bytes() const noexcept { return bytes_; }
  /// Returns the index of the interface that a link-local address belongs to; otherwise 0.
  [[nodiscard]] constexpr std::uint32_t scope() const noexcept { return scope_; }
  /// Returns the text in the form that `parse` takes.
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const ip_address&, const ip_address&) noexcept = default;

 private:
  bool is_v6_ = false;
  std::array<std::uint8_t, 16> bytes_{};
  std::uint32_t scope_ = 0;
};

/// An address and a port.
struct endpoint {
  ip_address address;      ///< of a host or an interface
  std::uint16_t port = 0;  ///< in the byte order of the host

  /// Parses "192.0.2.1:80" or "[2001:db8::1]:80". Fails with io_error::bad_syntax.
  static result<endpoint> parse(std::string_view text);
  /// Returns the text in the form that `parse` takes.
  [[nodiscard]] std::string to_string() const;

  friend constexpr auto operator<=>(const endpoint&, const endpoint&) noexcept = default;
};

namespace detail {
/// Fills in the kernel's form of the address and returns its length.
std::uint32_t to_native(const endpoint& from, ::sockaddr_storage& to) noexcept;
endpoint from_native(const ::sockaddr_storage& from) noexcept;
}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
