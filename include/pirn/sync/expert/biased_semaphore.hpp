// A semaphore that costs the fibers of one worker no atomic operation.
#pragma once

#include "pirn/sync/detail/biased_word.hpp"
#include "pirn/sync/semaphore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
extern template class biased_word<std::int64_t>;
extern template class semaphore_core<biased_domain>;
}  // namespace detail

/// A semaphore for permits that the fibers of one worker use nearly always, and others now and then. The first fiber
/// that uses it biases it towards its worker, whose fibers then take and give back permits by plain loads and stores.
/// A caller from elsewhere ends that permanently, and interrupts all threads of the process once (`heavy_fence`); from
/// then on it is an ordinary semaphore, which costs about as much as a `counting_semaphore`. It is one from the
/// beginning if a plain thread is first, or where the kernel has no membarrier. First come, first served, as there;
/// waiting costs as much as there too. After Dolan, Muralidharan and Gregg 2013, "Compiler support for lightweight
/// context switching", 6.3, which biases locks.
///
/// Its library is `pirn::biased_mutex`. Unlike a `counting_semaphore` it must outlive the return of every call.
template <std::ptrdiff_t LeastMax = PTRDIFF_MAX / 2>
class biased_semaphore : public detail::timed_semaphore<biased_semaphore<LeastMax>> {
  static_assert(LeastMax >= 0 && LeastMax <= PTRDIFF_MAX / 2);

 public:
  /// Begins with `count` permits; aborts if that is negative or more than `max()`.
  constexpr explicit biased_semaphore(std::ptrdiff_t count, wait_policy waiting = {}) noexcept
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

  /// Returns whether the semaphore is biased towards a worker. A hint.
  [[nodiscard]] bool biased() const noexcept { return core_.word().biased(); }

 private:
  detail::semaphore_core<detail::biased_domain> core_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
