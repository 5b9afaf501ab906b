// The thread that ends time slices. It never touches a fiber: the fiber itself yields, at its next safe point.
#include "fiber/time_slices.hpp"

#include <algorithm>

#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

time_slices::time_slices(runtime_state& owner, platform::duration slice) noexcept : owner_(owner), slice_(slice) {}

std::error_code time_slices::start() noexcept {
  try {
    records_.resize(owner_.workers.size());
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
  return thread_.start([](void* self) { static_cast<time_slices*>(self)->run(); }, this, "pirn-slices");
}

void time_slices::stop() noexcept {
  state_.store(stopping, platform::memory_order_release);
  platform::futex_wake(&state_, 1);
  thread_.join();
}

void time_slices::awake_thread() noexcept {
  std::uint32_t expected = asleep;
  if (state_.compare_exchange_strong(expected, awake, platform::memory_order_relaxed)) {
    platform::futex_wake(&state_, 1);
  }
}

void time_slices::run() noexcept {
  while (state_.load(platform::memory_order_acquire) != stopping) {
    if (check_workers()) {
      platform::futex_wait(state_, awake, platform::later(platform::now(), slice_ / 2));
    } else {
      sleep_with_workers();
    }
  }
}

bool time_slices::sleeps(const worker& w) const noexcept {
  const bool is_away =
      owner_.options.calling_thread && w.index == 0 && owner_.caller_is_idle.load(platform::memory_order_relaxed);
  return is_away || w.incoming.asleep();
}

bool time_slices::all_sleep() const noexcept {
  return std::ranges::all_of(owner_.workers, [this](const auto& each) { return sleeps(*each); });
}

bool time_slices::check_workers() noexcept {
  const platform::time_point now = platform::now();
  bool one_is_awake = false;
  for (const auto& each : owner_.workers) {
    worker& w = *each;
    record& before = records_[w.index];
    const bool is_awake = !sleeps(w);
    const std::uint64_t progress = w.counters.switches.load(platform::memory_order_relaxed) +
                                   w.counters.parks.load(platform::memory_order_relaxed);
    if (!is_awake || progress != before.progress) {
      before = {.progress = progress, .since = now};
    } else if (now - before.since >= slice_) {
      w.slice_over.store(true, platform::memory_order_relaxed);
    }
    one_is_awake |= is_awake;
  }
  return one_is_awake;
}

void time_slices::sleep_with_workers() noexcept {
  std::uint32_t expected = awake;
  if (!state_.compare_exchange_strong(expected, asleep, platform::memory_order_relaxed)) {
    return;
  }
  // Pairs with the light fence of `worker_awakes`: either this sees the worker awake, or the worker sees this state.
  platform::heavy_fence();
  if (all_sleep()) {
    platform::futex_wait(state_, asleep);
  }
  expected = asleep;
  state_.compare_exchange_strong(expected, awake, platform::memory_order_relaxed);
  const platform::time_point now = platform::now();
  for (record& each : records_) {
    each.since = now;
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
