// The name of whoever runs on a stack, as the layer above knows it.
#pragma once

#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

inline constexpr char unnamed_stack[] = "stack";

/// Writes a name and a terminating zero into `buffer`: what the describer says, or "stack". Async-signal-safe as far
/// as the describer is.
void describe_stack(const void* limit, const void* top, const void* fault, char* buffer, std::size_t size) noexcept;

/// Has an overflow on the calling OS thread told, as far as it has no alternate signal stack yet, until it ends. By who
/// takes stacks of the default pool, of which it may be that nobody else has thought of it.
void tell_overflows_here() noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
