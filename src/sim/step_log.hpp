// The steps of an execution, in the order in which they were taken, for the reduction with source sets (Abdulla,
// Aronis, Jonsson and Sagonas, POPL 2014).
#pragma once

#include <cstdint>
#include <vector>

#include "pirn/detail/platform.hpp"
#include "sim/memory.hpp"
#include "sim/schedule.hpp"
#include "sim/vector_clock.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

class step_log {
 public:
  void clear() noexcept { steps_.clear(); }
  /// Adds or extends the step of `thread` with that number; `order` is its clock since.
  void add(unsigned thread, std::uint64_t number, const vector_clock& order);
  /// Returns the threads with which an execution can continue at the point of `earlier`, so that the last step comes
  /// before `earlier`. All steps that need not come behind `earlier` keep their order. At least one of the threads is
  /// right; the set need not be complete.
  [[nodiscard]] thread_set initials(const earlier_steps::step& earlier) const noexcept;

 private:
  struct step {
    unsigned thread;
    std::uint32_t time;  ///< of the thread, when it began
    std::uint64_t number;
    vector_clock order;
  };
  std::vector<step> steps_;
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
