// The end of a program that breaks the contract of a primitive.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Prints on standard error the mistake and the object concerned, and aborts.
[[noreturn]] PIRN_ENDS_PROCESS inline void misuse(const char* what, const void* object) noexcept {
  std::fprintf(stderr, "pirn: %s (%p)\n", what, object);
  std::abort();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
