// The slow paths of a countdown: its last step, and waits.
#include "pirn/sync/detail/countdown.hpp"

#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

void countdown::take_last(std::int64_t count, const char* complaint) noexcept {
  waiters_.lock();
  // Acquire: through this caller the waiters must see what all the others did.
  const std::int64_t left = left_.fetch_sub(count, platform::memory_order_acq_rel) - count;
  if (left < 0 || count < 0) {
    misuse(complaint, this);
  }
  if (left == 0) {
    waiters_.notify_all_and_unlock();
  } else {
    waiters_.unlock();  // something was added meanwhile
  }
}

std::expected<void, wait_error> countdown::wait(const wait_options& options) noexcept {
  // Under the lock even if the count is zero: the caller may destroy the object then, and the lock ensures that the
  // last `take` is through with it.
  waiters_.lock();
  if (left() == 0) {
    waiters_.unlock();
    return {};
  }
  if (const wake_reason reason = waiters_.wait(options); reason != wake_reason::notified) {
    return std::unexpected(error_of(reason));
  }
  return {};
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
