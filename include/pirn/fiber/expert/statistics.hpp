// Numbers about a runtime and its workers. Included by runtime.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Statistics of a runtime at one moment; each number is exact, but together they may be torn.
struct runtime_statistics {
  std::size_t workers = 0;           ///< threads that run fibers
  std::size_t live_fibers = 0;       ///< spawned and not yet ended; a child ends a moment after it has told its scope
  std::uint64_t spawned = 0;         ///< in total
  std::size_t blocking_threads = 0;  ///< OS threads for calls that block, idle ones included
};

/// Statistics of one worker, at one moment; each number but `ready` only rises.
struct worker_statistics {
  std::uint64_t spawned = 0;           ///< fibers that its fibers have spawned
  std::uint64_t ended = 0;             ///< fibers that have ended on it
  std::uint64_t steal_operations = 0;  ///< times that it took fibers or a continuation from another worker
  std::uint64_t stolen = 0;            ///< fibers and continuations taken in these
  std::uint64_t parks = 0;             ///< times that it had nothing to do and slept
  std::uint64_t wakes = 0;             ///< times that it woke another worker to steal
  std::uint64_t trimmed = 0;           ///< suspended fibers whose stacks it has trimmed
  std::uint64_t switches = 0;          ///< from one of its fibers to another or to the scheduler, up to its last tick
  std::size_t ready = 0;        ///< fibers in its queues at its last count; it counts up to a hundred times a second
  std::uint64_t overflows = 0;  ///< of the queue by which io_uring reports the ends of requests; see docs/engines.md
  platform::duration longest_wait{};  ///< the longest time from when a fiber was ready until it ran; with a tracer only
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
