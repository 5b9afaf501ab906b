// Conditional requests (RFC 9110, 13): the answer depends on the client's copy of the content that it asks for.
#pragma once

#include <cstdint>
#include <string_view>

#include "pirn/http/message.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

enum class condition : std::uint8_t { holds, not_modified, failed };

/// Evaluates the conditions of a GET or HEAD. The content has this strong entity tag and was modified at that time, in
/// seconds since 1970. The result says whether to answer as if there were no conditions, with 304, or with 412.
[[nodiscard]] condition check_conditions(const request& asked, std::string_view tag, std::int64_t modified) noexcept;
/// Whether a range may be served: always without If-Range, else only if the client's copy is exactly this version.
[[nodiscard]] bool range_applies(const request& asked, std::string_view tag, std::int64_t modified) noexcept;

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
