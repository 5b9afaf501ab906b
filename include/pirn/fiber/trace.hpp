// What a runtime tells of its fibers while it runs, for a timeline.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Something that has happened to a fiber. Pointers and views hold during the call only, but `reason`, if it is not
/// null, is a text that stays.
struct trace_event {
  enum class kind : std::uint8_t {
    spawned,
    started,    ///< it is about to run for the first time
    suspended,  ///< it is about to leave its worker, for `reason`
    woken,      ///< it is about to be made ready
    resumed,    ///< it is about to run again
    ended,
  };
  kind what;
  std::uint64_t fiber;    ///< its number
  std::string_view name;  ///< as it was spawned with
  std::uint64_t by;       ///< the number of the fiber that runs there, by which it was spawned or woken; 0 for none
  int worker;             ///< the index of the one on whose thread it happens; -1 for any other thread
  const char* reason = nullptr;  ///< as in a dump: what it waits for, "its turn" for a yield
  const void* object = nullptr;  ///< the same: the address of that
};

/// Called for each event of a runtime's fibers where it happens: on the fiber's stack, a scheduler's or a thread's, by
/// several threads at a time. It may not suspend, throw, spawn or wake.
using tracer = std::function<void(const trace_event&)>;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
