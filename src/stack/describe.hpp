// The name of a stack's user, as the layer above knows it.
#pragma once

#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

inline constexpr char unnamed_stack[] = "stack";

/// Writes a name and a terminating zero into `buffer`: the describer's, or "stack". Async-signal-safe as far
/// as the describer is.
void describe_stack(const void* limit, const void* top, const void* fault, char* buffer, std::size_t size) noexcept;

/// Makes sure that an overflow on the calling OS thread is reported until the thread ends: gives it an alternate signal
/// stack if it has none yet. Called when a thread takes stacks of the default pool, since no other code may have done
/// it.
void report_overflows_here() noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
