// The fiber that runs, and the mark that it leaves on a lock that it holds: all that a lock needs to know of a worker.
#pragma once

#include <cstdint>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

struct run_node;
struct fiber_control;

/// The beginning of a worker: what it runs, a fiber or its scheduler.
struct running_node {
  run_node* running;
  bool no_switch_over = false;  ///< while set, a wake-up does not switch from the running fiber
  /// Returns that of the calling OS thread; null on a plain thread.
  [[nodiscard]] PIRN_ALWAYS_INLINE static const running_node* here() noexcept {
    return static_cast<const running_node*>(platform::current_worker());
  }
};

/// Keeps wake-ups from switching away from the calling fiber, for calls of others' code while it holds a spinlock: what
/// is to be switched to is queued instead. The fiber must not suspend meanwhile, so one does not nest in another.
class no_switch_over {
 public:
  PIRN_ALWAYS_INLINE no_switch_over() noexcept : here_(static_cast<running_node*>(platform::current_worker())) {
    if (here_ != nullptr) [[likely]] {
      here_->no_switch_over = true;
    }
  }
  PIRN_ALWAYS_INLINE ~no_switch_over() {
    if (here_ != nullptr) [[likely]] {
      here_->no_switch_over = false;
    }
  }
  no_switch_over(const no_switch_over&) = delete;
  no_switch_over& operator=(const no_switch_over&) = delete;

 private:
  running_node* const here_;
};

/// The base of objects that one fiber at a time can hold. If a waiting fiber is found here, it has held the object
/// since before that wait: it removes the mark before it releases the object, and does neither while it waits. A plain
/// thread leaves a mark that names no fiber.
class owner_mark {
 public:
  /// Returns the holder. Null if there is no holder, if it is no fiber (a plain thread, a callback in a scheduler), or
  /// if it is just about to leave a mark. Only its block may be looked at: it may have ended. Defined
  /// in worker.hpp.
  [[nodiscard]] const fiber_control* owner() const noexcept;

 protected:
  /// Called when the caller has acquired it.
  PIRN_ALWAYS_INLINE void mark_owner() noexcept { owner_.store(caller(), platform::memory_order_relaxed); }
  /// Called when the caller is about to release it.
  PIRN_ALWAYS_INLINE void forget_owner() noexcept { owner_.store(0, platform::memory_order_relaxed); }
  /// Returns the object for a wait for the owner.
  [[nodiscard]] PIRN_ALWAYS_INLINE const owner_mark* mark() const noexcept { return this; }

  /// Returns the mark of the caller. A lock may have its whole state in the word: zero means no holder.
  [[nodiscard]] static PIRN_ALWAYS_INLINE std::uintptr_t caller() noexcept {
    const running_node* const here = running_node::here();
    if (here == nullptr) [[unlikely]] {
      return no_fiber;
    }
    return reinterpret_cast<std::uintptr_t>(here->running);
  }
  static constexpr std::uintptr_t no_fiber = 1;
  /// The sign bit, which no address has: for use by a lock.
  static constexpr std::uintptr_t contended_bit = std::uintptr_t{1} << (8 * sizeof(std::uintptr_t) - 1);

  platform::atomic<std::uintptr_t> owner_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
