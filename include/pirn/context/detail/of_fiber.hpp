// What would be a variable of the thread, but is about the code that runs there: a fiber may suspend while it is set,
// and go on on another thread. So a fiber has its own. The names of the C API say nothing about the build: the library
// may be another one's.
#pragma once

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Where the calling fiber keeps the pirn_coroutine that it runs in; null on a plain thread. Valid as long as the
/// fiber. One that is not `to_write` may be of a fiber that has written none, and is only to be read.
void** c_coroutine_of_fiber(bool to_write) noexcept asm("pirn_c_coroutine_of_fiber")
    __attribute__((weak, visibility("default")));

/// The same for a dispatcher of usched.h: two words, the thread that runs and where its frames end. As above.
void** usched_of_fiber(bool to_write) noexcept asm("pirn_usched_of_fiber") __attribute__((weak, visibility("default")));

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
class forced_unwind;

namespace detail {

struct dropping;

/// The innermost unwinds that are under way. A destructor that one of them runs may suspend the fiber, and others then
/// begin and end some.
struct unwinds_under_way {
  forced_unwind* innermost = nullptr;
  dropping* innermost_dropping = nullptr;
};
/// Those of the calling fiber; null on a plain thread. As above. Null in a program without fibers.
unwinds_under_way* unwinds_of_fiber(bool to_write) noexcept __attribute__((weak));
inline constinit thread_local unwinds_under_way unwinds_of_thread;

/// Those of the caller. To be asked anew behind each switch.
PIRN_COLD PIRN_NOINLINE inline unwinds_under_way& unwinds_here(bool to_write) noexcept {
  asm volatile("");
  unwinds_under_way* const own = &unwinds_of_fiber != nullptr ? unwinds_of_fiber(to_write) : nullptr;
  return own != nullptr ? *own : unwinds_of_thread;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
