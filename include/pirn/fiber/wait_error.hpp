// The error of every call that waits.
#pragma once

#include <cstdint>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Why a blocking call did not do its work.
enum class wait_error : std::uint8_t {
  timed_out = 1,  ///< its own deadline passed
  stopped = 2,    ///< the fiber, or a scope around the caller, was asked to stop
  closed = 3,     ///< the channel (or other object) was closed
  expired = 4,    ///< the deadline of a scope around the caller passed
};
/// A short English phrase for `error`.
const char* to_string(wait_error error) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
