// How often the process was forked. Objects that know it can tell their own process from a child of it, which has their
// memory, and none of the threads and fibers that use them.
#pragma once

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The number of forks since the first call of `count_forks`.
extern constinit platform::signal_atomic<unsigned> process_forks;

/// Counts forks from now on. Returns how many there were; without memory for that they are not counted.
unsigned count_forks() noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
