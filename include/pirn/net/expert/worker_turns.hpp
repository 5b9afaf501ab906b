// Which worker serves the next connection. Included by acceptor.hpp.
#pragma once

#include <cstdint>
#include <memory>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Distributes connections over the workers of the calling fiber's runtime. Each connection goes to a worker with the
/// fewest connections; workers with equally few take turns. One fiber calls `take`; any fiber or thread may call
/// `give_back`.
class worker_turns {
 public:
  /// Throws std::system_error (operation_not_permitted) on a plain thread, and std::bad_alloc.
  worker_turns();
  /// Returns the worker for the next connection, and counts the connection there. O(workers).
  [[nodiscard]] unsigned take() noexcept;
  /// Returns the number of the runtime's workers.
  [[nodiscard]] unsigned workers() const noexcept { return workers_; }
  /// Records that a connection of `worker` has ended.
  void give_back(unsigned worker) noexcept { open_[worker].fetch_sub(1, platform::memory_order_relaxed); }

 private:
  unsigned workers_;
  unsigned next_ = 0;
  std::unique_ptr<platform::atomic<std::uint32_t>[]> open_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
