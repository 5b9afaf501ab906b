// Gives back the memory that suspended fibers of one worker no longer use.
#pragma once

#include <cstddef>

#include "pirn/detail/time.hpp"
#include "pirn/fiber/detail/block_cache.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class worker;

/// Passes over the control blocks, in steps between which the worker does other things. A pass notes which fibers are
/// suspended and for which of their waits, in a word beside each block; who is in the same wait still when the next
/// pass comes has been suspended for as long as lies between them, and the pages below its sp are given back. So those
/// that have been suspended the longest have been trimmed by earlier passes, before any that are younger; a wait that
/// is over sooner costs nothing; and nobody is trimmed twice in one wait.
/// No fiber runs meanwhile: they are those of the worker whose scheduler calls. For those that another worker might
/// take once they are woken, thieves are kept out of its queue.
class stack_trimmer {
 public:
  /// `after` is how long a fiber must be suspended at least; not positive for a trimmer that waits for requests.
  explicit stack_trimmer(platform::duration after) noexcept : after_(after) {}

  /// Asks for a pass that trims whoever is suspended. Any thread; the worker must be notified.
  void request() noexcept { requested_.store(true, platform::memory_order_release); }

  // -- by the worker
  [[nodiscard]] bool due(platform::time_point now) const noexcept {
    return now >= next_ || requested_.load(platform::memory_order_relaxed);
  }
  /// When the next step is due if no fiber runs until then, or `never`.
  [[nodiscard]] platform::time_point next() const noexcept { return next_; }
  /// Fibers have run, so there may be something to do for a later pass.
  void fibers_have_run(platform::time_point now) noexcept {
    if (next_ == platform::never && after_ > platform::duration::zero()) [[unlikely]] {
      next_ = platform::later(now, after_);
    }
  }
  /// A step. One that is `busy` takes less of the worker's time.
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
  block_chunk* chunk_ = nullptr;  ///< where the pass is; null while there is none
  std::size_t index_ = 0;         ///< in it
  std::size_t waiting_ = 0;       ///< fibers that this pass has noted for the next
  bool all_ = false;              ///< whether the pass asks how long they have been suspended
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
