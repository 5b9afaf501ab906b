// The phases of a barrier.
#include "pirn/sync/barrier.hpp"

#include "pirn/sync/detail/local_domain.hpp"
#include "sync/misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class Domain>
void barrier_core<Domain>::refuse_number() noexcept {
  misuse<Domain>("a local barrier expects a negative number of arrivals", this);
}

template <class Domain>
auto barrier_core<Domain>::arrive(std::ptrdiff_t count, std::ptrdiff_t leaving) noexcept -> arrival {
  const platform::spin_guard guard(waiters_);
  if (count <= 0 || count > left_) {
    misuse<Domain>("more arrivals at a local barrier than it expects, or less than one", this);
  }
  left_ -= count;
  expected_ -= leaving;
  return {phase_, left_ == 0};
}

template <class Domain>
void barrier_core<Domain>::next_phase() noexcept {
  waiters_.lock();
  left_ = expected_;
  ++phase_;
  waiters_.notify_all_and_unlock();
}

template <class Domain>
bool barrier_core<Domain>::leave(std::uint64_t phase) noexcept {
  const platform::spin_guard guard(waiters_);
  --expected_;
  if (phase == phase_) {
    return false;
  }
  if (left_ == 0) {
    misuse<Domain>("a participant that leaves a local barrier has not arrived in this or the last phase", this);
  }
  return --left_ == 0;
}

template <class Domain>
std::expected<void, wait_error> barrier_core<Domain>::wait(std::uint64_t phase,
                                                           platform::time_point deadline) noexcept {
  waiters_.lock();
  if (phase != phase_) {
    waiters_.unlock();
    return {};
  }
  return wait_result(waiters_.wait({.deadline = deadline, .what = name_of<Domain>("local barrier"), .object = this}));
}

template class barrier_core<shared_domain>;
template class barrier_core<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
