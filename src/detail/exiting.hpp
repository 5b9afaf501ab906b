// Whether the process is about to end.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Whether the caller was called by `exit`, which a return from main calls too: it is part of the destructor of a
/// static object, or of a function given to atexit. Other threads still run then, and what they use is not to be given
/// back. Walks the stack, some microseconds: for those who would otherwise end the process with a message, or wait for
/// long.
[[nodiscard]] bool exiting() noexcept;

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
