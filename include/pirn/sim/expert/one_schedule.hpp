// Parts of a program that an exploration does not vary. Included by explore.hpp.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

/// Suppresses the choices of the schedule while an object of this class exists: the running thread continues until it
/// cannot. This is for parts of a program that are not under test, such as the beginning and the end of a runtime, so
/// that the executions differ in the other parts. Steps of other threads are then not tried both before and after such
/// a part, not even where that affects the part, and `result::complete` does not take this into account.
class one_schedule {
 public:
  one_schedule() noexcept;
  ~one_schedule();
  one_schedule(const one_schedule&) = delete;
  one_schedule& operator=(const one_schedule&) = delete;
};

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
