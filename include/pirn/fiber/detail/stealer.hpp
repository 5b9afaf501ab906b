// The part of a worker that takes fibers from other workers.
#pragma once

#include <vector>

#include "pirn/fiber/detail/fairness.hpp"
#include "pirn/fiber/detail/stealable_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class worker;

/// Searches the queues of other workers, and decides when the own queue for any worker has its turn. For the worker's
/// thread.
class stealer {
 public:
  stealer(worker& of, std::size_t workers) : w_(of), seen_(workers) {}
  stealer(const stealer&) = delete;
  stealer& operator=(const stealer&) = delete;

  /// Takes the next one of the worker's stealable fibers, or null.
  [[nodiscard]] run_node* next(stealable_queue& own) noexcept;
  /// Takes stealable fibers from other workers. True if there may be something to do now.
  bool find_work(platform::random& random) noexcept;
  /// Steals from the calling thread's worker while that does not run, however busy this one is.
  void steal_from_idle_caller() noexcept;
  /// Makes the next `find_work` search, however many other workers do.
  void search_beside_others() noexcept;
  /// Ends the search, if there is one.
  void stop_searching() noexcept;

  /// Ends the search before a steal: then the fence of the theft also serves the look at what was queued meanwhile.
  /// Returns whether this was the last to search, for `end_steal`.
  [[nodiscard]] bool begin_steal() noexcept;
  void steal_failed() noexcept;
  void end_steal(bool last) noexcept;

  // -- for the parker
  /// Ends the search and marks the worker as about to sleep.
  void begin_parking() noexcept;
  /// Marks it as awake. It searches if it was woken for work, has `found` some, or was the sentinel.
  void end_parking(bool found, bool was_sentinel) noexcept;
  /// Whether something waits long at another worker.
  [[nodiscard]] bool sees_work() const noexcept;
  /// Whether fibers have passed through the queues of others since the last call.
  [[nodiscard]] bool sees_traffic() noexcept;
  /// How long the sentinel sleeps before it looks at the LIFO slots of others.
  [[nodiscard]] platform::duration sentinel_pause() const noexcept { return sentinel_pause_; }

 private:
  void search() noexcept;
  /// As `find_work`, from one worker: its older half, or, with a `version`, its LIFO slot if that is unchanged.
  bool steal_from(worker& victim, std::uint32_t version = 0) noexcept;
  /// Whether that worker's queue has waited for most of a search: otherwise its owner is faster than a thief.
  [[nodiscard]] bool waits_long_at(const worker& victim) const noexcept;

  /// How long a fiber may lie in a LIFO slot, if all others sleep, before one of them looks at it: at first, and at
  /// most, after some looks that found nothing.
  static constexpr platform::duration first_sentinel_pause = std::chrono::microseconds(100);
  static constexpr platform::duration max_sentinel_pause = std::chrono::milliseconds(1);
  /// The queue of a worker, as this one has seen it: at the beginning of a search, and when it last fell asleep.
  struct seen_queue {
    std::uint32_t lifo_version = 0;
    std::uint32_t taken = 0;
    std::uint32_t moves = 0;
  };

  worker& w_;
  bool searching_ = false;           ///< whether `idle_workers` counts it as searching
  turn_budget lifo_slot_turns_{16};  ///< of fibers of the LIFO slot, since one of the list had its turn
  std::vector<seen_queue> seen_;
  platform::duration sentinel_pause_ = first_sentinel_pause;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
