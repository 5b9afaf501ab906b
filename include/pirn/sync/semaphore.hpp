// A semaphore: permits that any caller may take and give back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// The part that all counting_semaphores share: a semaphore whose largest count comes with each call.
template <class Domain>
class semaphore_core {
 public:
  constexpr semaphore_core(std::ptrdiff_t count, std::ptrdiff_t max, wait_policy waiting = {}) noexcept
      : word_(count * one_permit), rule_(waiting) {
    if (count < 0 || count > max) {
      refuse_count();
    }
  }
  semaphore_core(const semaphore_core&) = delete;
  semaphore_core& operator=(const semaphore_core&) = delete;

  PIRN_ALWAYS_INLINE bool try_acquire() noexcept {
    Domain::enter(waiters_);
    std::int64_t seen = word_.load(platform::memory_order_relaxed);
    while (seen >= one_permit) {
      if (word_.compare_exchange_weak(seen, seen - one_permit, platform::memory_order_acquire,
                                      platform::memory_order_relaxed)) [[likely]] {
        return true;
      }
    }
    return false;
  }
  PIRN_ALWAYS_INLINE void release(std::ptrdiff_t count, std::ptrdiff_t max) noexcept {
    Domain::enter(waiters_);
    std::int64_t seen = word_.load(platform::memory_order_relaxed);
    while ((seen & waited) == 0 && count >= 0 && count <= max - seen / one_permit) [[likely]] {
      if (word_.compare_exchange_weak(seen, seen + count * one_permit, platform::memory_order_release,
                                      platform::memory_order_relaxed)) [[likely]] {
        return;
      }
    }
    release_slow(count, max);
  }
  PIRN_DEFINED_ONCE std::expected<void, wait_error> acquire_slow(platform::time_point deadline) noexcept;
  [[nodiscard]] const auto& word() const noexcept { return word_; }

 private:
  // The word is twice the number of permits, plus `waited` while the queue may hold waiters. `waited` is set and
  // cleared under the queue's lock. While it is set, a release hands permits off, or adds them to the word and wakes
  // waiters that run elsewhere. Then there are no more permits than woken waiters that have not run, unless the queue
  // is empty.
  static constexpr std::int64_t waited = 1;
  static constexpr std::int64_t one_permit = 2;

  [[noreturn]] PIRN_DEFINED_ONCE void refuse_count() noexcept;
  PIRN_DEFINED_ONCE void release_slow(std::ptrdiff_t count, std::ptrdiff_t max) noexcept;
  [[nodiscard]] PIRN_DEFINED_ONCE bool take_or_mark() noexcept;

  typename Domain::template atomic<std::int64_t> word_;
  std::int64_t owed_ = 0;  ///< permits for woken waiters that have not run; under the queue's lock
  waiting_rule rule_;
  typename Domain::queue waiters_;
};

extern template class semaphore_core<shared_domain>;

}  // namespace detail

/// A number of permits, as std::counting_semaphore: at most `LeastMax`, checked. First come, first served: a release
/// hands its permits off to the longest waiters, if they are fibers of the worker that releases. Any other waiter is
/// woken, and callers that come before it runs may bypass it, four times at most. Fibers of any worker and plain
/// threads share it. A caller that knows that its acquire was the last call may destroy it, even while the release has
/// not returned yet.
template <std::ptrdiff_t LeastMax = PTRDIFF_MAX / 2, class Domain = detail::shared_domain>
class counting_semaphore : public detail::timed_semaphore<counting_semaphore<LeastMax, Domain>> {
  static_assert(LeastMax >= 0 && LeastMax <= PTRDIFF_MAX / 2);

 public:
  /// Begins with `count` permits; aborts if that is negative or more than `max()`.
  constexpr explicit counting_semaphore(std::ptrdiff_t count, wait_policy waiting = {}) noexcept
      : core_(count, LeastMax, waiting) {}

  /// Returns the largest number of permits.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return LeastMax; }

  /// Takes a permit; suspends while no permit is free, until the deadline passes or the caller is asked to stop. A free
  /// permit is taken in any case.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::expected<void, wait_error> acquire(
      time_limit deadline = platform::never) noexcept {
    if (core_.try_acquire()) [[likely]] {
      return {};
    }
    return core_.acquire_slow(deadline);
  }
  /// Takes a permit if one is free. Never suspends.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool try_acquire() noexcept { return core_.try_acquire(); }
  /// Gives back `count` permits. Aborts if `count` is negative or the permits become more than `max()`. Does not
  /// suspend, unless its policy is `switch_over`. O(waiters woken).
  PIRN_ALWAYS_INLINE void release(std::ptrdiff_t count = 1) noexcept { core_.release(count, LeastMax); }

 protected:
  detail::semaphore_core<Domain> core_;  ///< a biased_semaphore asks it for the bias
};

/// A semaphore of one permit: a flag to wait for, which one waiter clears.
using binary_semaphore = counting_semaphore<1>;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
