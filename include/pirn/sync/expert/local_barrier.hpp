// The barrier of the fibers of one worker: see pirn/sync/expert/local.hpp.
#pragma once

#include "pirn/sync/barrier.hpp"
#include "pirn/sync/detail/local_domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
extern template class barrier_core<local_domain>;
}  // namespace detail

namespace local {

/// As `pirn::barrier`.
template <class Completion = detail::no_completion>
using barrier = pirn::barrier<Completion, detail::local_domain>;

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
