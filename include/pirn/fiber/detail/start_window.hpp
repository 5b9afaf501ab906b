// What a worker is about to touch first when it starts many new fibers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "pirn/fiber/detail/control.hpp"

namespace pirn::inline PIRN_ABI::detail {

/// New fibers start in the order in which they were launched, so the worker knows whose memory it will need soon. Only
/// used to fetch it ahead (a sixth of the cost of a batch): an entry may be stale, and a stack stays mapped.
class start_window {
 public:
  /// A fiber was put behind the others.
  PIRN_ALWAYS_INLINE void launched(const fiber_control* f) noexcept { window_[launched_++ % size] = f; }
  /// The next of them starts: fetches the block of one that comes a little later, and the frames below it.
  PIRN_ALWAYS_INLINE void started() noexcept {
    const auto later = reinterpret_cast<std::uintptr_t>(window_[(started_++ + ahead) % size]);
    for (const std::uintptr_t line : {later - 128, later - 64, later, later + 64}) {
      __builtin_prefetch(reinterpret_cast<const void*>(line), 1);
    }
  }

 private:
  static constexpr unsigned size = 1024;
  static constexpr unsigned ahead = 4;
  unsigned launched_ = 0;
  unsigned started_ = 0;
  std::unique_ptr<const fiber_control*[]> window_ = std::make_unique<const fiber_control*[]>(size);
};

}  // namespace pirn::inline PIRN_ABI::detail
