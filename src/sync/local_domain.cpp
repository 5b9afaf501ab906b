// The queue of the objects of pirn::local.
#include "pirn/sync/detail/local_domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

bool local_queue::notify_one_and_unlock(wake_policy policy) noexcept {
  waiter* const first = waiters_.claim_first();
  if (first == nullptr) {
    return false;
  }
  schedule(*first->wake.agent(), placement_of(policy));
  return true;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
