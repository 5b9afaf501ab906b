// The barrier of the fibers of one worker: see pirn/sync/expert/local.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/sync/barrier.hpp"
#include "pirn/sync/detail/local_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// As `barrier_core`.
class local_barrier_core {
 public:
  explicit local_barrier_core(std::ptrdiff_t expected) noexcept;

  struct arrival {
    std::uint64_t phase;
    bool last;
  };
  arrival arrive(std::ptrdiff_t count, std::ptrdiff_t leaving) noexcept;
  void next_phase() noexcept;
  [[nodiscard]] bool leave(std::uint64_t phase) noexcept;
  std::expected<void, wait_error> wait(std::uint64_t phase, platform::time_point deadline) noexcept;

 private:
  std::ptrdiff_t expected_;
  std::ptrdiff_t left_;
  std::uint64_t phase_ = 0;
  local_queue waiters_;
};

}  // namespace detail

namespace local {

/// As `pirn::barrier`.
template <class Completion = detail::no_completion>
using barrier = pirn::barrier<Completion, detail::local_barrier_core>;

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
