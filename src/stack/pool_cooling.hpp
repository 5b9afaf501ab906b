// When the idle stacks of a pool give back the memory beyond its high-water mark: by the workers of the runtimes that
// use it, some time after they have become idle.
#pragma once

#include <cstddef>

#include "pirn/detail/platform.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The duties of a worker towards its pool. Thread-safe. In an exploration nothing is ever due: memory goes at once.
struct pool_cooling {
  /// Promises to call `step` when it is due, until `end`.
  static void begin(guarded_pool& pool) noexcept;
  /// When the last worker has ended, what is beyond the mark is given back.
  static void end(guarded_pool& pool) noexcept;
  /// Returns when the next step is due, or `never`.
  [[nodiscard]] static platform::time_point next(const guarded_pool& pool) noexcept;
  /// Gives back the memory of some stacks, fewer if `busy`, unless another worker does that just now.
  static void step(guarded_pool& pool, platform::time_point now, bool busy) noexcept;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
