// The slow paths of a countdown: its last step, and waits.
#include "pirn/sync/detail/countdown.hpp"

#include "pirn/sync/detail/local_domain.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class Domain>
void countdown<Domain>::take_last(std::int64_t count, const char* complaint) noexcept {
  waiters_.lock();
  // Acquire: through this caller the waiters must see what all the others did.
  const std::int64_t left = left_.fetch_sub(count, platform::memory_order_acq_rel) - count;
  if (left < 0 || count < 0) {
    misuse<Domain>(complaint, this);
  }
  if (left == 0) {
    const wake_policy wake = rule_.wake();
    waiter* const woken = waiters_.claim_all();
    waiters_.unlock();
    wait_list::schedule_all(woken, wake);
  } else {
    waiters_.unlock();  // something was added meanwhile
  }
}

template <class Domain>
std::expected<void, wait_error> countdown<Domain>::wait(const wait_options& options) noexcept {
  // Under the lock even if the count is zero: the caller may destroy the object then, and the lock ensures that the
  // last `take` is through with it.
  waiters_.lock();
  if (left() == 0) {
    waiters_.unlock();
    return {};
  }
  return wait_result(rule_.wait(waiters_.list(), waiters_.own_lock(), options));
}

template class countdown<shared_domain>;
template class countdown<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
