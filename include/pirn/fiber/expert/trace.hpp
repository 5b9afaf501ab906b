// Events of a runtime's fibers, for a timeline.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// An event of a fiber. Pointers and views are valid during the call only, except `reason`: if not null, the text stays
/// valid.
struct trace_event {
  /// The kinds of events.
  enum class kind : std::uint8_t {
    spawned,
    started,    ///< it is about to run for the first time
    suspended,  ///< it is about to leave its worker, for `reason`
    woken,      ///< it is about to be made ready
    resumed,    ///< it is about to run again
    ended,
  };
  kind what;                     ///< which of them it is
  std::uint64_t fiber;           ///< its number
  std::string_view name;         ///< given when it was spawned
  std::uint64_t by;              ///< the number of the running fiber, which spawned or woke it; 0 for none
  int worker;                    ///< the index of the worker on whose thread it happens; -1 for any other thread
  const char* reason = nullptr;  ///< as in a dump: what it waits for, "its turn" for a yield
  const void* object = nullptr;  ///< the address of that, as in a dump
};

/// Called for each event of a runtime's fibers where it happens: on the stack of the fiber, of a scheduler or of a
/// thread, by several threads at a time. It must not suspend, throw, spawn or wake.
using tracer = std::function<void(const trace_event&)>;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
