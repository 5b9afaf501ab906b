// Connects to the first of several addresses that answers (RFC 8305, "Happy Eyeballs").
#pragma once

#include <expected>
#include <span>
#include <string>
#include <vector>

#include "pirn/net/tcp_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Why no connection came about: the error, and each address that was tried. Compares equal to the codes that its
/// `code` equals: `error == std::errc::connection_refused`.
struct connect_error {
  /// An address that was tried.
  struct attempt {
    endpoint to;           ///< the address
    std::error_code code;  ///< why it was not this one
  };
  std::error_code code;                ///< of the look-up, the stop or the deadline; otherwise of the first attempt
  std::vector<attempt> attempts = {};  ///< those that have failed, in the order of their ends
  std::string host = {};               ///< the argument of `resolver::connect`, unless that could not begin

  /// Returns a line such as "[2001:db8::1]:80: Network is unreachable; 192.0.2.1:80: Connection refused", or
  /// "db.example.com: no host has that name".
  [[nodiscard]] std::string message() const;
  template <class Code>
    requires std::is_error_code_enum_v<Code> || std::is_error_condition_enum_v<Code>
  friend bool operator==(const connect_error& error, Code wanted) noexcept {
    return error.code == wanted;
  }
};

/// The time that an attempt has before the next one begins beside it, where RFC 8305 proposes 250 ms. It is halved each
/// time that it passes, to 10 ms, and all others begin when it has passed five times. So where none is refused,
/// attempts begin after 150, 225, 263 and 281 ms, and the rest after 291 ms: up to 132 addresses that do not answer
/// cost less than 300 ms together. In a longer list 128 more begin every 10 ms.
inline constexpr std::chrono::milliseconds attempt_delay{150};

/// Connects to the first of these endpoints that answers. Begins with the first; whenever an attempt fails, or has not
/// succeeded in its time (`attempt_delay`), the next one begins beside those that still run. Addresses of the two
/// families take turns, each family in the order given. The attempts that were not needed are abandoned and closed
/// before the call returns. A stop and the deadline end it. For fibers only: fails with
/// std::errc::operation_not_permitted on a plain thread, and with std::errc::invalid_argument without an endpoint. Each
/// attempt is a fiber on the caller's worker.
[[nodiscard]] std::expected<tcp_stream, connect_error> connect_any(std::span<const endpoint> to,
                                                                   const connect_options& options = {},
                                                                   time_limit deadline = platform::never) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
