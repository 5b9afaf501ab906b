#include "pirn/sync/wait_group.hpp"

#include "sync/misuse.hpp"

namespace pirn::inline PIRN_ABI {

void wait_group::last_done() noexcept {
  waiters_.lock();
  // Acquire: the waiters are to see what all the others did, through this one.
  const std::int64_t left = left_.fetch_sub(1, platform::memory_order_acq_rel) - 1;
  if (left < 0) {
    detail::misuse("a wait_group has more done than was added", this);
  }
  if (left == 0) {
    waiters_.notify_all_and_unlock();
  } else {
    waiters_.unlock();  // something was added meanwhile
  }
}

std::expected<void, wait_error> wait_group::wait(platform::time_point deadline) noexcept {
  // Under the lock even if nothing is left: the caller may destroy the group then, and by way of the lock the last
  // `done` is through with it.
  waiters_.lock();
  if (left_.load(platform::memory_order_acquire) == 0) {
    waiters_.unlock();
    return {};
  }
  const wake_reason reason = waiters_.wait({.deadline = deadline, .what = "wait group", .object = this});
  if (reason != wake_reason::notified) {
    return std::unexpected(detail::error_of(reason));
  }
  return {};
}

}  // namespace pirn::inline PIRN_ABI
