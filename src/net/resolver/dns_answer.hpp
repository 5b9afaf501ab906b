// Reads the answers of name servers.
#pragma once

#include <cstdint>
#include <span>

#include "net/look_ups.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Reads the message that came for a question with this status of c-ares (ARES_SUCCESS and others). The time to live is
/// the shortest of the records of the answer, or for a negative one what the SOA record says (RFC 2308). Reports the
/// lack of memory as an answer.
[[nodiscard]] answer read_answer(record_kind asked, int status, std::span<const std::uint8_t> message) noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
