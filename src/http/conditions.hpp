// What a request makes its answer depend on (RFC 9110, 13): the client's copy of what it asks for.
#pragma once

#include <cstdint>
#include <string_view>

#include "pirn/http/message.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

enum class condition : std::uint8_t { holds, not_modified, failed };

/// Whether a GET or HEAD of something with this entity tag, a strong one, which was modified then, in seconds since
/// 1970, is to be answered as if there were no conditions, with 304, or with 412.
[[nodiscard]] condition check_conditions(const request& asked, std::string_view tag, std::int64_t modified) noexcept;
/// Whether a range may be served: without If-Range always, else if the client's copy is exactly this version.
[[nodiscard]] bool range_applies(const request& asked, std::string_view tag, std::int64_t modified) noexcept;

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
