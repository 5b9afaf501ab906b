// Finds out whether the process is ending, from a function given to atexit and from the caller's stack.
#include "detail/exiting.hpp"

#include <atomic>
#include <cstdlib>

#include "pirn/detail/exiting.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

namespace {

// An object that is made while exit runs its last functions is destroyed by the end of its program or library. That
// code is part of the compiler and has no unwind tables, so a walk does not find the frame of exit behind it. Any
// function given to atexit has run by then. This one walks the stack too, since it is also called when a library that
// contains it is unloaded.
constinit std::atomic<bool> exit_has_begun = false;
[[maybe_unused]] const int registered =
    std::atexit([] { exit_has_begun.store(called_by_exit(), std::memory_order_relaxed); });

}  // namespace

bool exiting() noexcept { return exit_has_begun.load(std::memory_order_relaxed) || called_by_exit(); }
bool exiting_if_linked() noexcept { return exiting(); }

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
