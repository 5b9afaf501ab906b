// Futures for the fibers of one worker: see pirn/sync/expert/local.hpp.
#pragma once

#include "pirn/sync/detail/local_domain.hpp"
#include "pirn/sync/future.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
extern template class future_state<local_domain>;
}  // namespace detail

namespace local {

/// As those of `pirn`. Objects that share a result are copied, moved and destroyed on one thread at a time.
template <class T>
using future = pirn::future<T, detail::local_domain>;
/// As `pirn::shared_future`.
template <class T>
using shared_future = pirn::shared_future<T, detail::local_domain>;
/// As `pirn::promise`.
template <class T>
using promise = pirn::promise<T, detail::local_domain>;
/// As `pirn::packaged_task`.
template <class Signature>
using packaged_task = pirn::packaged_task<Signature, detail::local_domain>;

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
