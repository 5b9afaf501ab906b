// Reports of deadlocks that are certain.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Fibers that wait forever.
struct deadlock {
  /// The kinds of deadlocks.
  enum class kind : std::uint8_t {
    cycle,       ///< each waits for the next one, or for what that one holds; the last for the first
    standstill,  ///< all fibers of the runtime wait, and nothing is left that could wake one
  };
  kind what;                          ///< which of them it is
  std::vector<std::uint64_t> fibers;  ///< the numbers of the fibers in the cycle; empty for a standstill
  /// A description, then all fibers of the runtime as `runtime::dump` prints them.
  std::string report;
};

/// Called once for each deadlock, in a fiber of the runtime (without memory for one, outside of fibers). When it
/// returns, the fibers keep waiting.
using deadlock_handler = std::function<void(const deadlock&)>;

/// The exit status of a process that `exit_on_deadlock` ends.
inline constexpr int deadlock_exit_status = 70;
/// The default handler: writes the report to standard error, flushes the streams of the C library and ends the process
/// at once. It runs no destructors, because they would wait for the fibers.
[[noreturn]] void exit_on_deadlock(const deadlock& found);

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
