// Checks of a request beyond the grammar of its lines: its target, Host, framing and expectations.
#pragma once

#include "http/parser.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Checks a request whose head has been parsed and lies at `head`, and fills in what follows from the head: the framing
/// of the body, whether the connection may be kept, the authority, and the target as handlers get it. Handlers get only
/// a part of a target in absolute form. May change the bytes of the target. Returns the status with which to refuse the
/// request, or 0.
[[nodiscard]] int check_head(parsed_request& request, char* head);

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
