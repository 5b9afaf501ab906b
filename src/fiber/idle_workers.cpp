// Keeps track of the workers that sleep or search for work, and wakes sleepers.
#include "pirn/fiber/detail/idle_workers.hpp"

#include <bit>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

idle_workers::idle_workers(unsigned workers) : asleep_((workers + bits - 1) / bits), engines_(workers) {}

unsigned idle_workers::sleeper() const noexcept {
  // Sequentially consistent, as `transition_to_parked` and the changes of searching_ are: a search that ends, and to
  // which a caller has left its work meanwhile, sees the sleepers that this caller saw. On x86 any load is.
  for (unsigned word = 0; word < asleep_.size(); ++word) {
    if (const std::uint64_t set = asleep_[word].load(platform::memory_order_seq_cst); set != 0) {
      return word * bits + static_cast<unsigned>(std::countr_zero(set));
    }
  }
  return nobody;
}

bool idle_workers::any() const noexcept {
  return searching_.load(platform::memory_order_relaxed) != 0 || sleeper() != nobody;
}

bool idle_workers::others_asleep(unsigned worker) const noexcept {
  // Ordered with `transition_to_parked`: of workers that fall asleep at the same time, at least one sees all the
  // others.
  std::size_t left = engines_.size();
  for (unsigned word = 0; word < asleep_.size(); ++word) {
    const std::uint64_t set = asleep_[word].load(platform::memory_order_seq_cst);
    left -= static_cast<std::size_t>(std::popcount(word == worker / bits ? set | bit(worker) : set));
  }
  return left == 0;
}

bool idle_workers::recruit_searcher() noexcept {
  // The work was queued before this fence. Pairs with the heavy fence between `transition_to_parked` or `end_search`
  // and the look at the queues.
  platform::light_fence();
  while (sleeper() != nobody) {
    std::uint32_t none = 0;
    if (!searching_.compare_exchange_strong(none, 1, platform::memory_order_seq_cst, platform::memory_order_seq_cst)) {
      return false;
    }
    if (recruit_sleeper()) {
      return true;
    }
    // All sleepers were woken otherwise meanwhile. Callers that have queued work since then have left it to this
    // search.
    end_search();
  }
  return false;
}

bool idle_workers::recruit_sleeper() noexcept {
  for (unsigned who = sleeper(); who != nobody; who = sleeper()) {
    if ((asleep_[who / bits].fetch_and(~bit(who), platform::memory_order_seq_cst) & bit(who)) != 0) {
      sleepers_.fetch_sub(1, platform::memory_order_seq_cst);
      unpark(who);
      return true;
    }
  }
  return false;
}

bool idle_workers::try_search() noexcept {
  if (2 * searching_.load(platform::memory_order_relaxed) >= engines_.size()) {
    return false;
  }
  search();
  return true;
}

void idle_workers::transition_to_parked(unsigned worker, bool searching) noexcept {
  sleepers_.fetch_add(1, platform::memory_order_seq_cst);
  asleep_[worker / bits].fetch_or(bit(worker), platform::memory_order_seq_cst);
  if (searching) {
    end_search();
  }
}

bool idle_workers::transition_from_parked(unsigned worker) noexcept {
  if ((asleep_[worker / bits].fetch_and(~bit(worker), platform::memory_order_seq_cst) & bit(worker)) == 0) {
    return true;
  }
  sleepers_.fetch_sub(1, platform::memory_order_seq_cst);
  return false;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
