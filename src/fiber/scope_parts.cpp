// The parts of a scope: its children, their exceptions, and the interruption of its opener.
#include "pirn/fiber/detail/scope_parts.hpp"

#include <utility>

#include "pirn/fiber/fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

void scope_children::leave() noexcept {
  std::size_t left = running_.load(platform::memory_order_relaxed);
  while (left > wake_at_ + 1) {
    // Release: the opener sees what the child did.
    if (running_.compare_exchange_weak(left, left - 1, platform::memory_order_release,
                                       platform::memory_order_relaxed)) {
      return;
    }
  }
  done_.lock();
  left = running_.fetch_sub(1, platform::memory_order_acq_rel) - 1;
  // The opener checks under the lock, so the scope exists until the lock is released.
  if (left == 0 || left == wake_at_) {
    done_.notify_all_and_unlock();
  } else {
    done_.unlock();
  }
}

void scope_children::wait_for(std::size_t left, const stop_list& stops) noexcept {
  done_.lock();
  while (running_.load(platform::memory_order_acquire) > left) {
    static_cast<void>(done_.wait({.stoppable = false,
                                  .wakeable_by = left == 0 && wake_at_ == 0 ? awaited::children : awaited::anybody,
                                  .what = "children of a scope",
                                  .object = &stops}));
    done_.lock();
  }
  done_.unlock();
}

bool scope_exceptions::keep_first(const std::exception_ptr& what) noexcept {
  const platform::spin_guard guard(lock_);
  const bool first = first_ == nullptr;
  if (first) {
    first_ = what;
  }
  return first;
}

void scope_exceptions::keep(const std::vector<std::exception_ptr>& others) {
  const platform::spin_guard guard(lock_);
  others_.insert(others_.end(), others.begin(), others.end());
}

void scope_exceptions::rethrow() {
  if (first_ != nullptr) {
    rethrow_with(std::exchange(first_, nullptr), std::exchange(others_, {}));
  }
}

void scope_exceptions::report(const agent& opener) noexcept {
  if (first_ != nullptr) {
    report_unhandled(opener, std::move(first_));
  }
  for (std::exception_ptr& other : others_) {
    report_unhandled(opener, std::move(other));
  }
}

void opener_interruption::set_away(bool away) noexcept {
  const platform::spin_guard guard(lock_);
  away_ = away;
}

void opener_interruption::interrupt(agent& opener, wake_reason why) noexcept {
  bool woken = false;
  {
    const platform::spin_guard guard(lock_);
    woken = !away_ && opener.interrupt(why);
  }
  if (woken) {
    schedule(opener, placement::front);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
