// The fiber that holds a lock, for the search for deadlocks and for dumps.
#pragma once

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The base of objects that one fiber at a time can hold. If a waiting fiber is found here, it has held the object
/// since before that wait: it removes the mark before it releases the object, and does neither while it waits. A plain
/// thread leaves a mark that names no fiber.
class owner_mark {
 public:
  /// Returns the holder. Null if there is no holder, if it is no fiber (a plain thread, a callback in a scheduler), or
  /// if it is just about to leave a mark. Only its block may be looked at: it may have ended.
  [[nodiscard]] const fiber_control* owner() const noexcept {
    const std::uintptr_t node = owner_.load(platform::memory_order_acquire) & ~contended_bit;
    static_assert(run_queue::scheduler_offset() % block_chunk::alignment != 0);
    const bool is_fiber = node % block_chunk::alignment == 0;
    return is_fiber ? static_cast<const fiber_control*>(reinterpret_cast<const run_node*>(node)) : nullptr;
  }

 protected:
  /// Called when the caller has acquired it.
  PIRN_ALWAYS_INLINE void mark_owner() noexcept { owner_.store(caller(), platform::memory_order_relaxed); }
  /// Called when the caller is about to release it.
  PIRN_ALWAYS_INLINE void forget_owner() noexcept { owner_.store(0, platform::memory_order_relaxed); }
  /// Returns the object for a wait for the owner.
  [[nodiscard]] PIRN_ALWAYS_INLINE const owner_mark* mark() const noexcept { return this; }

  /// Returns the mark of the caller. A lock may have its whole state in the word: zero means no holder.
  [[nodiscard]] static PIRN_ALWAYS_INLINE std::uintptr_t caller() noexcept {
    const worker* const w = current_worker();
    if (w == nullptr) [[unlikely]] {
      return no_fiber;
    }
    return reinterpret_cast<std::uintptr_t>(w->queue.running());
  }
  static constexpr std::uintptr_t no_fiber = 1;
  /// The sign bit, which no address has: for use by a lock.
  static constexpr std::uintptr_t contended_bit = std::uintptr_t{1} << (8 * sizeof(std::uintptr_t) - 1);

  platform::atomic<std::uintptr_t> owner_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
