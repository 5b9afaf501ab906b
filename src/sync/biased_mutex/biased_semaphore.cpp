// The slow paths of a biased semaphore: the beginning and the end of its bias.
#include "pirn/sync/expert/biased_semaphore.hpp"

#include "sync/biased_mutex/bias.hpp"
#include "sync/semaphore_core.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class T>
T biased_word<T>::load_slow(std::memory_order order) noexcept {
  const std::uintptr_t here = this_worker();
  const platform::spin_guard guard(lock_);
  const std::uintptr_t bias = bias_.load(platform::memory_order_relaxed);
  if (bias == unbiased) {
    const bool begins = here != 0 && bias_pays();
    bias_.store(begins ? here : shared, platform::memory_order_release);
  } else if (bias != shared && bias != here) {
    bias_.store(bias | revoking, platform::memory_order_relaxed);
    platform::heavy_fence();  // pairs with the light fence of the exchange
    found_ = here_.load(platform::memory_order_acquire);
    word_.store(found_, platform::memory_order_relaxed);
    bias_.store(shared, platform::memory_order_release);
  }
  return bias_.load(platform::memory_order_relaxed) == shared ? word_.load(order) : here_.load(order);
}

template <class T>
bool biased_word<T>::was_in_time(T value) noexcept {
  const platform::spin_guard guard(lock_);  // until the revoker has found a value
  return found_ == value;
}

template class biased_word<std::int64_t>;
template class semaphore_core<biased_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
