// The order in which to try the addresses of a host (RFC 6724, section 6).
#pragma once

#include <optional>
#include <vector>

#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Returns the address from which the kernel would send to `to`, if it has a route. Does not suspend; sends nothing.
[[nodiscard]] std::optional<ip_address> source_for(const ip_address& to) noexcept;

/// Sorts the addresses: those with a route first, then by the rules of RFC 6724 that can be told from the two addresses
/// (same scope, same label, precedence, smaller scope, longest common prefix for IPv6). Keeps the order of equals, so
/// that a server which rotates its answers spreads its clients. Throws std::bad_alloc.
void order_addresses(std::vector<ip_address>& all,
                     std::optional<ip_address> (*source)(const ip_address&) noexcept = source_for);

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
