// What a request must hold to beyond the grammar of its lines: which Host, target and framing are refused, and with
// what.
#pragma once

#include <string_view>

#include "http/parser.hpp"

namespace pirn::inline PIRN_ABI::http {

/// The status with which a request is refused whose head, from `head` on, has been parsed; 0 if it is not.
[[nodiscard]] int check_head(const parsed_request& request, bool chunked, const char* head) noexcept;

/// Whether a request line that the parser took for one of an unknown version is otherwise fine.
[[nodiscard]] bool is_other_version(std::string_view head) noexcept;

/// The target as handlers get it. May change the bytes of the target that are not needed any more.
[[nodiscard]] std::string_view path_of_target(const parsed_request& request, char* head) noexcept;

}  // namespace pirn::inline PIRN_ABI::http
