#include "pirn/sync/local.hpp"

namespace pirn::inline PIRN_ABI::detail {

std::expected<void, wait_error> local_queue::wait(const wait_options& options) noexcept {
  const wake_reason reason = waiters_.wait(home_, options);
  if (reason != wake_reason::notified) {
    return std::unexpected(error_of(reason));
  }
  return {};
}

bool local_queue::wake_first_slow(bool back) noexcept {
  waiter* const first = waiters_.claim_first();
  if (first == nullptr) {
    return false;
  }
  make_runnable(first->wake.who(), back);
  return true;
}

}  // namespace pirn::inline PIRN_ABI::detail
