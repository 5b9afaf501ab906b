// The check that only the owner of a recursive mutex unlocks it.
#include "pirn/sync/recursive_mutex.hpp"

#include "pirn/sync/detail/local_domain.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class Domain>
void basic_recursive_mutex<Domain>::check_owner(const agent& self) const noexcept {
  Domain::enter(mutex_.waiters_);
  if (owner_.load(platform::memory_order_relaxed) != &self) {
    misuse<Domain>("unlock() called on a local recursive_mutex that the caller does not own", this);
  }
}

template class basic_recursive_mutex<shared_domain>;
template class basic_recursive_mutex<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
