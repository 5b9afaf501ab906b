// The check that only the owner of a recursive mutex unlocks it.
#include "pirn/sync/recursive_mutex.hpp"

#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

void recursive_mutex::check_owner(const detail::agent& self) const noexcept {
  if (owner_.load(platform::memory_order_relaxed) != &self) {
    detail::misuse("unlock() called on a recursive_mutex that the caller does not own", this);
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
