#include "pirn/sync/condition_variable.hpp"

#include "sync/misuse.hpp"

namespace pirn::inline PIRN_ABI {

std::expected<void, wait_error> condition_variable::wait(std::unique_lock<mutex>& lock,
                                                         platform::time_point deadline) noexcept {
  if (!lock.owns_lock()) {
    detail::misuse("wait with a lock that does not own its mutex", this);
  }
  // The queue is locked before the mutex is unlocked, so that no notification can fall between the two.
  waiters_.lock();
  lock.unlock();
  const wake_reason reason = waiters_.wait({.deadline = deadline, .what = "condition variable", .object = this});
  lock.lock();
  if (reason != wake_reason::notified) {
    return std::unexpected(detail::error_of(reason));
  }
  return {};
}

}  // namespace pirn::inline PIRN_ABI
