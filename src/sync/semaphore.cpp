// The semaphores of both domains.
#include "pirn/sync/semaphore.hpp"

#include "pirn/sync/detail/local_domain.hpp"
#include "sync/semaphore_core.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template class semaphore_core<shared_domain>;
template class semaphore_core<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
