// Which fiber holds a lock, for the search for deadlocks and for dumps.
#pragma once

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The base of what one fiber at a time can hold. A fiber that is found here while it waits has held it since before
/// that wait: it takes the mark away before it lets go, and does neither while it waits. A plain thread leaves a mark
/// that names no fiber.
class owner_mark {
 public:
  /// Null for nobody, what is no fiber (a plain thread, a callback in a scheduler), or somebody who is just about to
  /// leave a mark. Only its block may be looked at: it may have ended.
  [[nodiscard]] const fiber_control* owner() const noexcept {
    const std::uintptr_t node = owner_.load(platform::memory_order_acquire) & ~contended_bit;
    static_assert(run_queue::scheduler_offset() % block_chunk::alignment != 0);
    const bool is_fiber = node % block_chunk::alignment == 0;
    return is_fiber ? static_cast<const fiber_control*>(reinterpret_cast<const run_node*>(node)) : nullptr;
  }

 protected:
  /// The caller has got it.
  PIRN_ALWAYS_INLINE void mark_owner() noexcept { owner_.store(caller(), platform::memory_order_relaxed); }
  /// The caller is about to let go.
  PIRN_ALWAYS_INLINE void forget_owner() noexcept { owner_.store(0, platform::memory_order_relaxed); }
  /// What a wait for the owner has as its object.
  [[nodiscard]] PIRN_ALWAYS_INLINE const owner_mark* mark() const noexcept { return this; }

  /// The mark of the caller. A lock may have its whole state in the word: zero is nobody.
  [[nodiscard]] static PIRN_ALWAYS_INLINE std::uintptr_t caller() noexcept {
    const worker* const w = current_worker();
    if (w == nullptr) [[unlikely]] {
      return no_fiber;
    }
    return reinterpret_cast<std::uintptr_t>(w->queue.running());
  }
  static constexpr std::uintptr_t no_fiber = 1;
  /// A bit that no address has, and the sign: for that lock's use.
  static constexpr std::uintptr_t contended_bit = std::uintptr_t{1} << (8 * sizeof(std::uintptr_t) - 1);

  platform::atomic<std::uintptr_t> owner_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
