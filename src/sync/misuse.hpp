// The end of a program that breaks the contract of a primitive.
#pragma once

#include <cstring>
#include <string_view>

#include "pirn/detail/abi.hpp"
#include "pirn/detail/contract.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Prints on standard error the mistake and the object concerned, and aborts. `what` speaks of a local object; the text
/// for a shared one is without that word.
template <class Domain>
[[noreturn]] PIRN_ENDS_PROCESS void misuse(const char* what, const void* object) noexcept {
  const char* const word = Domain::is_local ? nullptr : std::strstr(what, "local ");
  const std::string_view before(what, word != nullptr ? static_cast<std::size_t>(word - what) : 0);
  const char* const rest = word != nullptr ? word + std::strlen("local ") : what;
  fail_contract(before, rest, " (", object, ")");
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
