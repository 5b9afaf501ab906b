// The count down to zero that wait_group and latch share.
#pragma once

#include <cstdint>

#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A number, and the waiters until it is zero.
template <class Domain>
class countdown {
 public:
  constexpr explicit countdown(std::int64_t count, wait_policy waiting = {}) noexcept : left_(count), rule_(waiting) {}

  void add(std::int64_t count) noexcept {
    Domain::enter(waiters_);
    left_.fetch_add(count, platform::memory_order_relaxed);
  }
  /// Subtracts `count`. Aborts with `complaint` if less is left or `count` is negative.
  PIRN_ALWAYS_INLINE void take(std::int64_t count, const char* complaint) noexcept {
    Domain::enter(waiters_);
    std::int64_t left = left_.load(platform::memory_order_relaxed);
    while (left > count && count >= 0) {
      // Release: a waiter sees what was done before.
      if (left_.compare_exchange_weak(left, left - count, platform::memory_order_release,
                                      platform::memory_order_relaxed)) [[likely]] {
        return;
      }
    }
    take_last(count, complaint);
  }
  PIRN_DEFINED_ONCE std::expected<void, wait_error> wait(const wait_options& options) noexcept;
  /// Acquire: a caller that sees zero sees what was done before.
  [[nodiscard]] std::int64_t left() const noexcept {
    Domain::enter(waiters_);
    return left_.load(platform::memory_order_acquire);
  }

 private:
  PIRN_DEFINED_ONCE void take_last(std::int64_t count, const char* complaint) noexcept;

  typename Domain::template atomic<std::int64_t> left_;  ///< becomes 0 only under the queue's lock
  waiting_rule rule_;
  typename Domain::queue waiters_;
};

extern template class countdown<shared_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
