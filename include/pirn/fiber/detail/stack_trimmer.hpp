// Gives back the memory that suspended fibers of one worker no longer use.
#pragma once

#include <cstddef>

#include "pirn/detail/time.hpp"
#include "pirn/fiber/detail/block_cache.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class worker;

/// Passes over the control blocks, in steps between which the worker does other things. A pass notes, in a word beside
/// each block, which fibers are suspended and in which of their waits. A fiber that is still in the same wait at the
/// next pass has been suspended for the time between the two, and the pages below its sp are given back. So earlier
/// passes have trimmed the fibers that have been suspended the longest, before any that are younger; a wait that ends
/// sooner costs nothing; and no fiber is trimmed twice in one wait.
/// No fiber runs meanwhile: they are those of the worker whose scheduler calls. For fibers that another worker might
/// take once they are woken, thieves are kept out of its queue.
class stack_trimmer {
 public:
  /// `after` is how long a fiber must be suspended at least; not positive for a trimmer that only serves requests.
  explicit stack_trimmer(platform::duration after) noexcept : after_(after) {}

  /// Asks for a pass that trims all suspended fibers. Any thread; the worker must be notified.
  void request() noexcept { requested_.store(true, platform::memory_order_release); }

  // -- by the worker
  [[nodiscard]] bool due(platform::time_point now) const noexcept {
    return now >= next_ || requested_.load(platform::memory_order_relaxed);
  }
  /// Returns when the next step is due if no fiber runs until then, or `never`.
  [[nodiscard]] platform::time_point next() const noexcept { return next_; }
  /// Called when fibers have run, so that a later pass may find something to do.
  void fibers_have_run(platform::time_point now) noexcept {
    if (next_ == platform::never && after_ > platform::duration::zero()) [[unlikely]] {
      next_ = platform::later(now, after_);
    }
  }
  /// Does a step. With `busy` it takes less of the worker's time.
  void step(worker& mine, platform::time_point now, bool busy) noexcept;

 private:
  void begin(platform::time_point now) noexcept;
  void end() noexcept;
  struct batch;
  void look_at(const fiber_control& f, std::uint32_t& note, batch& found) noexcept;

  platform::atomic<bool> requested_{false};
  platform::duration after_;
  platform::time_point next_ = platform::never;
  platform::time_point begun_;
  block_chunk* chunk_ = nullptr;  ///< where the pass is; null between passes
  std::size_t index_ = 0;         ///< in the chunk
  std::size_t waiting_ = 0;       ///< fibers that this pass has noted for the next
  bool all_ = false;              ///< whether the pass trims fibers no matter how long they are suspended
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
