// The places of running stack_swap dispatchers. Their swapped tasks are bodies without separate stacks: everything
// below the place of a dispatcher, on its stack, is theirs. Code that opens a block finds the dispatcher here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The tops of the places of running dispatchers. If there are more than it has room for, opening a block needs a stack
/// walk. May be called from any thread; each call is one atomic operation, and no memory is allocated.
class running_dispatchers {
 public:
  PIRN_NOINLINE static void begun(const void* top) noexcept {
    const platform::quiet no_steps;
    for (auto& each : tops_) {
      arch::word free = 0;
      if (each.load(platform::memory_order_relaxed) == 0 &&
          each.compare_exchange_strong(free, reinterpret_cast<arch::word>(top), platform::memory_order_relaxed)) {
        return;
      }
    }
    frame_bodies::made(nullptr, end_of_memory());
  }
  PIRN_NOINLINE static void ended(const void* top) noexcept {
    const platform::quiet no_steps;
    for (auto& each : tops_) {
      arch::word mine = reinterpret_cast<arch::word>(top);
      if (each.load(platform::memory_order_relaxed) == mine &&
          each.compare_exchange_strong(mine, 0, platform::memory_order_relaxed)) {
        return;
      }
    }
    frame_bodies::gone(nullptr, end_of_memory());
  }
  /// Returns whether the place of a dispatcher begins above `position` and not above `end`.
  [[nodiscard]] PIRN_NOINLINE static bool any_between(arch::word position, arch::word end) noexcept {
    const platform::quiet no_steps;
    for (const auto& each : tops_) {
      const arch::word top = each.load(platform::memory_order_relaxed);
      if (position < top && top <= end) {
        return true;
      }
    }
    return false;
  }

 private:
  static const void* end_of_memory() noexcept { return reinterpret_cast<const void*>(~std::uintptr_t{0} << 4); }

  static inline platform::atomic<arch::word> tops_[8]{};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
