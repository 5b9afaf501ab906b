// Implements the order of addresses: the policy table of RFC 6724 and the comparison of its section 6.
#include "net/address_order.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>

#include "net/socket.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

using bytes = std::array<std::uint8_t, 16>;

/// Returns the address as IPv6 has it: IPv4 addresses are mapped.
bytes as_v6(const ip_address& of) noexcept {
  if (of.is_v6()) {
    return of.bytes();
  }
  bytes mapped{};
  mapped[10] = mapped[11] = 0xff;
  std::copy_n(of.bytes().begin(), 4, mapped.begin() + 12);
  return mapped;
}

int common_prefix(const bytes& a, const bytes& b) noexcept {
  int bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto differ = static_cast<std::uint8_t>(a[i] ^ b[i]);
    bits += std::countl_zero(differ);
    if (differ != 0) {
      break;
    }
  }
  return bits;
}

/// Bits of an address that name a network. The bits of a host say nothing about the distance, and must not undo the
/// order by which a name server spreads the load.
constexpr int network_bits = 64;

struct policy {
  bytes prefix;
  int length, precedence, label;
};
/// The default table of RFC 6724, section 2.1, with the longest prefixes first.
constexpr policy policies[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50, 0},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 35, 4},
    {{}, 96, 1, 3},
    {{0x20, 0x01}, 32, 5, 5},
    {{0x20, 0x02}, 16, 30, 2},
    {{0x3f, 0xfe}, 16, 1, 12},
    {{0xfe, 0xc0}, 10, 1, 11},
    {{0xfc}, 7, 3, 13},
    {{}, 0, 40, 1},
};
const policy& policy_of(const bytes& address) noexcept {
  return *std::ranges::find_if(policies, [&](const policy& each) {
    return common_prefix(each.prefix, address) >= each.length;  // the last has length 0
  });
}

enum scope : int { interface_local = 1, link_local = 2, site_local = 5, global = 14 };
int scope_of(const ip_address& address) noexcept {
  const bytes& of = address.bytes();
  if (!address.is_v6()) {
    return of[0] == 127 || (of[0] == 169 && of[1] == 254) ? link_local : global;
  }
  if (of[0] == 0xff) {
    return of[1] & 0xf;
  }
  if (address == ip_address::loopback_v6() || (of[0] == 0xfe && (of[1] & 0xc0) == 0x80)) {
    return link_local;
  }
  return of[0] == 0xfe && (of[1] & 0xc0) == 0xc0 ? site_local : global;
}

/// An address and what the comparison looks at, in the order of the rules; less is better.
struct candidate {
  bool unusable, other_scope, other_label;
  int minus_precedence, scope, minus_common_bits;
  std::size_t place;
  ip_address address;
  auto operator<=>(const candidate&) const = default;
};

}  // namespace

std::optional<ip_address> source_for(const ip_address& to) noexcept {
  const auto socket = open_socket(to, SOCK_DGRAM);
  if (!socket || !call_with_address(*socket, endpoint{to, 53}, platform::system::connect)) {
    return {};
  }
  const auto name = name_of(*socket, platform::system::getsockname);
  return name ? std::optional(name->address) : std::nullopt;
}

void order_addresses(std::vector<ip_address>& all, std::optional<ip_address> (*source)(const ip_address&) noexcept) {
  if (all.size() < 2) {
    return;
  }
  std::vector<candidate> ranked;
  ranked.reserve(all.size());
  for (const ip_address& each : all) {
    const std::optional<ip_address> from = source(each);
    const policy& of = policy_of(as_v6(each));
    ranked.push_back({.unusable = !from,
                      .other_scope = from && scope_of(*from) != scope_of(each),
                      .other_label = from && policy_of(as_v6(*from)).label != of.label,
                      .minus_precedence = -of.precedence,
                      .scope = scope_of(each),
                      .minus_common_bits =
                          from && each.is_v6() ? -std::min(network_bits, common_prefix(as_v6(*from), as_v6(each))) : 0,
                      .place = ranked.size(),
                      .address = each});
  }
  std::ranges::sort(ranked);
  std::ranges::transform(ranked, all.begin(), &candidate::address);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
