// Which workers of a runtime sleep and how many look for work; decides which worker new work wakes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pirn/fiber/expert/engine.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The throttle of wake-ups, after the schedulers of Go and tokio. New work wakes a worker only if no worker is
/// searching. A worker that has found something while no other one searches looks whether there is more, and then wakes
/// the next. docs/scheduler.md has the states and says why no wake-up is lost. Any thread may call; shared with threads
/// that wake a worker, since the runtime may be gone before they return.
class idle_workers {
 public:
  explicit idle_workers(unsigned workers);
  idle_workers(const idle_workers&) = delete;
  idle_workers& operator=(const idle_workers&) = delete;

  /// Sets the engine in which the worker parks. Called before there are threads.
  void register_worker(unsigned worker, std::shared_ptr<engine> io) noexcept { engines_[worker] = std::move(io); }

  /// Wakes the worker if it is parked, or keeps it from parking the next time: the only wake of a parked worker.
  void unpark(unsigned worker) noexcept { engines_[worker]->interrupt_poll(); }

  /// From now on workers must look for work of others before they sleep. Called before the first such work is queued.
  void expect_work() noexcept {
    if (expected_.load(platform::memory_order_acquire) != (fence_pending | fence_done)) [[unlikely]] {
      // Dekker with a worker that falls asleep: it announces that and then reads this flag. Before it sees the flag it
      // sleeps without a fence.
      expected_.fetch_or(fence_pending, platform::memory_order_seq_cst);
      // Pairs with that announcement, and shows it to all callers that queue work from now on.
      platform::heavy_fence();
      expected_.fetch_or(fence_done, platform::memory_order_release);
    }
  }
  [[nodiscard]] bool work_expected() const noexcept { return expected_.load(platform::memory_order_seq_cst) != 0; }
  /// Called after work was queued for any worker: wakes a sleeping worker, unless one is searching. True if it did.
  bool recruit_searcher() noexcept;
  /// Returns a word that is zero only if no worker sleeps and a light fence costs nothing.
  [[nodiscard]] const platform::atomic<std::uint32_t>& sleepers() const noexcept {
    return platform::fences_are_asymmetric() ? sleepers_ : some_;
  }
  /// Whether some worker sleeps or searches. A hint.
  [[nodiscard]] bool any() const noexcept;

  /// Whether all workers but this one are parked, or about to be.
  [[nodiscard]] bool others_asleep(unsigned worker) const noexcept;

  /// Whether a sleeping worker will soon look at the LIFO slots of others without being woken.
  [[nodiscard]] bool has_sentinel() const noexcept { return has_sentinel_.load(platform::memory_order_relaxed); }

  // -- for a worker about itself
  /// Begins to search. False if at least half of the workers do: more would only be in each other's way.
  [[nodiscard]] bool try_search() noexcept;
  void search() noexcept { searching_.fetch_add(1, platform::memory_order_seq_cst); }
  /// Ends a search. True if no worker searches any more: this one must then care for what was queued since it looked.
  bool end_search() noexcept { return searching_.fetch_sub(1, platform::memory_order_seq_cst) == 1; }
  /// Marks the worker as about to sleep and ends its search. Then it must look at all queues, behind a heavy fence.
  void transition_to_parked(unsigned worker, bool searching) noexcept;
  /// Marks the worker as awake. True if it was woken for work: it is searching then.
  bool transition_from_parked(unsigned worker) noexcept;
  /// Makes it the sentinel, which from time to time looks at the work of others. False if there is one already.
  [[nodiscard]] bool try_become_sentinel() noexcept {
    return !has_sentinel_.exchange(true, platform::memory_order_seq_cst);
  }
  void resign_as_sentinel() noexcept { has_sentinel_.store(false, platform::memory_order_seq_cst); }

 private:
  static constexpr unsigned bits = 64;
  static constexpr unsigned nobody = ~0U;
  [[nodiscard]] static std::uint64_t bit(unsigned worker) noexcept { return std::uint64_t{1} << worker % bits; }
  [[nodiscard]] unsigned sleeper() const noexcept;
  bool recruit_sleeper() noexcept;

  /// Workers that look for work of others, and workers that are being woken to do so.
  alignas(64) platform::atomic<std::uint32_t> searching_{0};
  static constexpr std::uint8_t fence_pending = 1, fence_done = 2;
  platform::atomic<std::uint8_t> expected_{0};
  platform::atomic<bool> has_sentinel_{false};
  /// How many bits of `asleep_` are set, or are about to be: read by every fork, written when workers fall asleep.
  alignas(64) platform::atomic<std::uint32_t> sleepers_{0};
  static constexpr platform::atomic<std::uint32_t> some_{1};
  std::vector<platform::atomic<std::uint64_t>> asleep_;  ///< a bit for each worker; cleared by its waker, or the worker
  std::vector<std::shared_ptr<engine>> engines_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
