// Whether the process is about to end.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Returns whether the caller was called by `exit`, which a return from main calls too. Then it is part of the
/// destructor of a static object, or of a function given to atexit. Other threads still run, and resources that they
/// use must not be given back. Walks the stack, which takes some microseconds: for callers that would otherwise end the
/// process with a message, or wait for long.
[[nodiscard]] bool exiting() noexcept;

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
