// The last resort when the kernel refuses an indispensable call, as a sandbox may have it do.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Ends the process with a message: `call` failed with `error` (of errno); `consequence` is what that means for the
/// program.
[[noreturn]] PIRN_ENDS_PROCESS void refused(const char* call, int error, const char* consequence) noexcept;

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
