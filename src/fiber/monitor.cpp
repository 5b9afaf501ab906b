// Finds fibers that keep their workers for too long.
#include "fiber/monitor.hpp"

#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

turn_monitor::turn_monitor(runtime_state& owner, platform::duration stall_threshold) noexcept
    : owner_(owner), stall_threshold_(stall_threshold) {}

std::error_code turn_monitor::start() noexcept {
  try {
    records_.resize(owner_.workers.size());
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
  return thread_.start([](void* self) { static_cast<turn_monitor*>(self)->run(); }, this, "pirn-monitor");
}

void turn_monitor::stop() noexcept {
  stopping_.store(1, platform::memory_order_release);
  platform::futex_wake(&stopping_, 1);
  thread_.join();
}

void turn_monitor::run() noexcept {
  while (stopping_.load(platform::memory_order_acquire) == 0) {
    platform::futex_wait(stopping_, 0, platform::later(platform::now(), stall_threshold_ / 2));
    for (const auto& each : owner_.workers) {
      look_at(*each, records_[each->index]);
    }
  }
}

void turn_monitor::look_at(const worker& w, record& before) noexcept {
  const std::uint64_t progress =
      w.counters.switches.load(platform::memory_order_relaxed) + w.counters.parks.load(platform::memory_order_relaxed);
  if (progress != before.progress || w.incoming.asleep()) {
    before = {.progress = progress};
    return;
  }
  if (before.reported) {
    return;
  }
  const platform::time_point now = platform::now();
  const bool too_long = before.last.fiber != 0 && now - before.since >= stall_threshold_;
  if (before.last.fiber != 0 && !too_long) {
    return;
  }
  const turn found = find_turn(w, too_long ? before.last : turn{}, now - before.since);
  if (found != before.last) {
    before.last = found;
    before.since = now;
  } else {
    before.reported = too_long;
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
