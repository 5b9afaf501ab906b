// The primitives for the fibers of one worker: wait queue, shared mutex, barrier and future state.
#include "pirn/sync/expert/local.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

std::expected<void, wait_error> local::shared_mutex::wait_to_read(const wait_options& options) noexcept {
  detail::lock_waiter me;
  do {
    if (const wake_reason reason = me.wait(readers_.list(), readers_.home(), options);
        reason != wake_reason::notified) {
      return std::unexpected(detail::error_of(reason));
    }
  } while (!admitted_.confirm(me) && !read_if_open());
  return {};
}

namespace detail {

std::expected<void, wait_error> local_queue::wait(const wait_options& options) noexcept {
  const wake_reason reason = waiters_.wait(home_, options);
  if (reason != wake_reason::notified) {
    return std::unexpected(error_of(reason));
  }
  return {};
}

std::expected<void, wait_error> local_queue::wait_to_own(local_lock_state& lock, const wait_options& options,
                                                         const std::size_t& readers) noexcept {
  lock_waiter me;
  for (;;) {
    if (const wake_reason reason = me.wait(waiters_, home_, options); reason != wake_reason::notified) {
      return std::unexpected(error_of(reason));
    }
    if (me.owns() || lock == local_lock_state::handed_off || (lock == local_lock_state::free && readers == 0)) {
      lock = local_lock_state::taken;
      return {};
    }
    me.count_bypass();
  }
}

local_lock_state local_queue::hand_off_slow() noexcept {
  waiter* const first = waiters_.claim_first();
  if (first == nullptr) {
    return local_lock_state::free;
  }
  const bool granted = lock_waiter::try_grant(*first);
  make_runnable(first->wake.agent());
  return granted ? local_lock_state::taken : local_lock_state::handed_off;
}

std::size_t local_queue::wake_all() noexcept {
  waiter* const all = waiters_.claim_all();
  std::size_t count = 0;
  for (const waiter* each = all; each != nullptr; each = each->next) {
    ++count;
  }
  wait_list::make_all_runnable(all);
  return count;
}

std::size_t local_queue::admit(admitted_readers& readers) noexcept {
  waiter* const all = waiters_.claim_all();
  const std::size_t count = readers.admit(all);
  wait_list::make_all_runnable(all);
  return count;
}

bool local_queue::wake_first_slow(bool back) noexcept {
  waiter* const first = waiters_.claim_first();
  if (first == nullptr) {
    return false;
  }
  make_runnable(first->wake.agent(), back);
  return true;
}

local_barrier_core::local_barrier_core(std::ptrdiff_t expected) noexcept : expected_(expected), left_(expected) {
  if (expected < 0) {
    waiters_.refuse("a local barrier expects a negative number of arrivals");
  }
}

local_barrier_core::arrival local_barrier_core::arrive(std::ptrdiff_t count, std::ptrdiff_t leaving) noexcept {
  waiters_.enter();
  if (count <= 0 || count > left_) {
    waiters_.refuse("more arrivals at a local barrier than it expects, or less than one");
  }
  left_ -= count;
  expected_ -= leaving;
  return {phase_, left_ == 0};
}

void local_barrier_core::next_phase() noexcept {
  waiters_.enter();
  left_ = expected_;
  ++phase_;
  waiters_.wake_all();
}

bool local_barrier_core::leave(std::uint64_t phase) noexcept {
  waiters_.enter();
  --expected_;
  if (phase == phase_) {
    return false;
  }
  if (left_ == 0) {
    waiters_.refuse("a participant that leaves a local barrier has not arrived in this or the last phase");
  }
  return --left_ == 0;
}

std::expected<void, wait_error> local_barrier_core::wait(std::uint64_t phase, platform::time_point deadline) noexcept {
  waiters_.enter();
  if (phase != phase_) {
    return {};
  }
  return waiters_.wait({.deadline = deadline, .what = "local barrier", .object = this});
}

void local_future_state::begin() {
  waiters_.enter();
  if (stage_ != stage::empty) {
    throw_future_error(future_errc::promise_already_satisfied);
  }
  stage_ = stage::provided;
}

void local_future_state::publish() noexcept {
  stage_ = stage::ready;
  waiters_.wake_all();
}

void local_future_state::fail(std::exception_ptr why) {
  begin();
  failure_ = std::move(why);
  publish();
}

void local_future_state::abandon() noexcept {
  if (stage_ == stage::empty && retrieved_) {
    fail(std::make_exception_ptr(future_error(future_errc::broken_promise)));
  }
}

void local_future_state::take_future() {
  if (std::exchange(retrieved_, true)) {
    throw_future_error(future_errc::future_already_retrieved);
  }
}

std::expected<void, wait_error> local_future_state::wait(const wait_options& options) noexcept {
  if (ready()) {
    return {};
  }
  return waiters_.wait(options);
}

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
