// The end of a program that breaks the contract of a primitive.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Prints on standard error the mistake and the object concerned, and aborts. `what` speaks of a local object; the text
/// for a shared one is without that word.
template <class Domain>
[[noreturn]] PIRN_ENDS_PROCESS void misuse(const char* what, const void* object) noexcept {
  const char* const word = Domain::is_local ? nullptr : std::strstr(what, "local ");
  const auto before = word != nullptr ? static_cast<int>(word - what) : 0;
  const char* const rest = word != nullptr ? word + std::strlen("local ") : what;
  std::fprintf(stderr, "pirn: %.*s%s (%p)\n", before, what, rest, object);
  std::abort();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
