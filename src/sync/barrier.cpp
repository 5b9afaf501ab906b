// The phases of a barrier.
#include "pirn/sync/barrier.hpp"

#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

void barrier_core::refuse_number() noexcept { misuse("a barrier expects a negative number of arrivals", this); }

barrier_core::arrival barrier_core::arrive(std::ptrdiff_t count, std::ptrdiff_t leaving) noexcept {
  const platform::spin_guard guard(waiters_);
  if (count <= 0 || count > left_) {
    misuse("more arrivals at a barrier than it expects, or less than one", this);
  }
  left_ -= count;
  expected_ -= leaving;
  return {phase_, left_ == 0};
}

void barrier_core::next_phase() noexcept {
  waiters_.lock();
  left_ = expected_;
  ++phase_;
  waiters_.notify_all_and_unlock();
}

bool barrier_core::leave(std::uint64_t phase) noexcept {
  const platform::spin_guard guard(waiters_);
  --expected_;
  if (phase == phase_) {
    return false;
  }
  if (left_ == 0) {
    misuse("a participant that leaves a barrier has not arrived in this or the last phase", this);
  }
  return --left_ == 0;
}

std::expected<void, wait_error> barrier_core::wait(std::uint64_t phase, platform::time_point deadline) noexcept {
  waiters_.lock();
  if (phase != phase_) {
    waiters_.unlock();
    return {};
  }
  const wake_reason reason = waiters_.wait({.deadline = deadline, .what = "barrier", .object = this});
  if (reason != wake_reason::notified) {
    return std::unexpected(error_of(reason));
  }
  return {};
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
