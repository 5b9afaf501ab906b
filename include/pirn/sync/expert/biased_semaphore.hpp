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
class biased_semaphore : public counting_semaphore<LeastMax, detail::biased_domain> {
 public:
  /// Begins with `count` permits; aborts if that is negative or more than `max()`.
  constexpr explicit biased_semaphore(std::ptrdiff_t count, wait_policy waiting = {}) noexcept
      : counting_semaphore<LeastMax, detail::biased_domain>(count, waiting) {}

  /// Returns whether the semaphore is biased towards a worker. A hint.
  [[nodiscard]] bool biased() const noexcept { return this->core_.word().biased(); }
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
