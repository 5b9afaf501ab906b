#include "pirn/fiber/engine.hpp"

namespace pirn::inline PIRN_ABI {

wake_reason readiness::wait(io_direction direction, platform::time_point deadline,
                            std::optional<std::uint32_t> tried_at) noexcept {
  side& here = sides_[static_cast<int>(direction)];
  here.waiters.lock();
  if (here.ready || (tried_at && *tried_at != mark(direction))) {
    here.ready = false;
    here.waiters.unlock();
    return wake_reason::notified;
  }
  return here.waiters.wait({.deadline = deadline,
                            .from = awaited::outside,
                            .what = direction == io_direction::read ? "readable descriptor" : "writable descriptor",
                            .object = this});
}

void readiness::signal(io_direction direction) noexcept {
  side& here = sides_[static_cast<int>(direction)];
  here.mark.fetch_add(one_signal, platform::memory_order_acq_rel);
  here.waiters.lock();
  // Whoever waits now consumes the edge; otherwise, and where all those waits have just ended, the next finds it.
  waiter* const woken = here.waiters.claim_all();
  here.ready = woken == nullptr;
  here.waiters.unlock();
  wait_list::make_all_runnable(woken);
}

}  // namespace pirn::inline PIRN_ABI
