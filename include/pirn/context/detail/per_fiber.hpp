// Variables that would be the thread's, but concern the code that runs there: a fiber may suspend while one is set, and
// resume on another thread. So each fiber has its own. The names of the C API do not depend on the build, since the
// library may come from another one.
#pragma once

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Whether the caller reads a variable of the running fiber, or writes it too.
enum class slot_access : bool { read, write };

/// Returns where the calling fiber keeps the pirn_coroutine that it runs in; null on a plain thread. Valid as long as
/// the fiber. To be read only, it may be that of a fiber that has written none.
void** c_coroutine_of_fiber(slot_access how) noexcept asm("pirn_c_coroutine_of_fiber")
    __attribute__((weak, visibility("default")));

/// As `c_coroutine_of_fiber`, for a dispatcher of usched.h: two words, the running thread and the end of its frames.
void** usched_of_fiber(slot_access how) noexcept asm("pirn_usched_of_fiber")
    __attribute__((weak, visibility("default")));

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
class forced_unwind;

namespace detail {

struct dropping;

/// The innermost unwinds in progress. A destructor that one of them runs may suspend the fiber, and other fibers may
/// then begin and end unwinds.
struct unwinds_under_way {
  forced_unwind* innermost = nullptr;
  dropping* innermost_dropping = nullptr;
};
/// Returns the unwinds of the calling fiber, otherwise as `c_coroutine_of_fiber`. Null in a program without fibers.
unwinds_under_way* unwinds_of_fiber(slot_access how) noexcept __attribute__((weak));
inline constinit thread_local unwinds_under_way unwinds_of_thread;

/// Returns the unwinds of the caller. To be called again after each switch.
PIRN_COLD PIRN_NOINLINE inline unwinds_under_way& unwinds_here(slot_access how) noexcept {
  asm volatile("");
  unwinds_under_way* const own = &unwinds_of_fiber != nullptr ? unwinds_of_fiber(how) : nullptr;
  return own != nullptr ? *own : unwinds_of_thread;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
