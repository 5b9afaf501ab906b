// Which fiber holds a lock, for the search for deadlocks and for dumps.
#pragma once

#include "pirn/fiber/detail/worker.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// The base of what one fiber at a time can hold. A fiber that is found here while it waits has held it since before
/// that wait: it takes the mark away before it lets go, and does neither while it waits. Plain threads leave no mark.
class owner_mark {
 public:
  /// Null for nobody, what is no fiber (a plain thread, a callback in a scheduler), or somebody who is just about to
  /// leave a mark. Only its block may be looked at: it may have ended.
  [[nodiscard]] const fiber_control* owner() const noexcept {
    const run_node* const node = owner_.load(platform::memory_order_acquire);
    static_assert(run_queue::scheduler_offset() % block_chunk::alignment != 0);
    const bool is_fiber = reinterpret_cast<std::uintptr_t>(node) % block_chunk::alignment == 0;
    return is_fiber ? static_cast<const fiber_control*>(node) : nullptr;
  }

 protected:
  /// The caller has got it.
  PIRN_ALWAYS_INLINE void mark_owner() noexcept {
    if (const worker* const w = current_worker()) [[likely]] {
      owner_.store(w->queue.running(), platform::memory_order_relaxed);
    }
  }
  /// The caller is about to let go.
  PIRN_ALWAYS_INLINE void forget_owner() noexcept { owner_.store(nullptr, platform::memory_order_relaxed); }
  /// What a wait for the owner has as its object.
  [[nodiscard]] PIRN_ALWAYS_INLINE const owner_mark* mark() const noexcept { return this; }

 private:
  platform::atomic<const run_node*> owner_{nullptr};
};

}  // namespace pirn::inline PIRN_ABI::detail
