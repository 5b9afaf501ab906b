// What a request must hold to beyond the grammar of its lines: its target, Host, framing and expectations.
#pragma once

#include "http/parser.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Looks at a request whose head has been parsed and lies at `head`, and fills in what follows from it: how its body is
/// framed, whether the connection may be kept, the authority, and the target as handlers get it, which an absolute form
/// has only a part of. May change the bytes of the target. Returns the status with which the request is to be refused,
/// 0 if it is not.
[[nodiscard]] int check_head(parsed_request& request, char* head);

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
