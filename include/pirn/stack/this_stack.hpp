// The stack that the caller runs on, for interpreters and garbage collectors.
#pragma once

#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace this_stack {

/// Returns the bounds of the caller's stack: that of a fiber, of the body of a coroutine or generator on a stack of a
/// guarded_pool, or of the OS thread. Frames lie from the address of a local variable up to `top`, and free room lies
/// down to `limit`. For code on memory inside a frame (a frame_buffer, generator<T, frame<N>>) it is the stack on which
/// the frame lies. It is empty for code on memory that pirn did not map (a stack of the caller's memory, a copy_stack).
/// Any thread or fiber; does not suspend. O(slabs) of the pools in use; on a plain thread the first call asks the
/// system.
[[nodiscard]] stack bounds() noexcept;
/// As `bounds`, but null in a program that uses headers alone and is not linked with the library of stacks.
[[nodiscard]] stack bounds_if_linked() noexcept __attribute__((weak));

}  // namespace this_stack
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
