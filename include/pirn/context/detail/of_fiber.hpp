// What would be a variable of the thread, but is about the code that runs there: a fiber may suspend while it is set,
// and go on on another thread. So a fiber has its own. The names of the C API say nothing about the build: the library
// may be another one's.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// Where the calling fiber keeps the pirn_coroutine that it runs in; null on a plain thread. Valid as long as the
/// fiber. One that is not `to_write` may be of a fiber that has written none, and is only to be read.
void** c_coroutine_of_fiber(bool to_write) noexcept asm("pirn_c_coroutine_of_fiber")
    __attribute__((weak, visibility("default")));

}  // namespace pirn::inline PIRN_ABI::detail
