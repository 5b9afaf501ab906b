// The log of steps, and the threads with which a race can be reversed.
#include "sim/step_log.hpp"

#include <array>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

void step_log::add(unsigned thread, std::uint64_t number, const vector_clock& order) {
  if (!steps_.empty() && steps_.back().thread == thread && steps_.back().number == number) {
    steps_.back().order = order;
    return;
  }
  const platform::quiet unseen;
  steps_.push_back({thread, order.of(thread), number, order});
}

thread_set step_log::initials(const earlier_steps::step& earlier) const noexcept {
  std::array<const step*, max_threads> first{};
  const step* const last = &steps_.back();
  const step* at = last;
  for (; at->thread != earlier.thread || at->time > earlier.time; --at) {
    first[at->thread] = at;
  }
  for (const step*& each : first) {
    if (each != nullptr && each != last && each->order.covers(at->thread, at->time)) {
      each = nullptr;
    }
  }
  thread_set found = 0;
  for (const step* const each : first) {
    if (each == nullptr) {
      continue;
    }
    bool depends = false;
    for (const step* const other : first) {
      depends |= other != nullptr && other != each && each->order.covers(other->thread, other->time);
    }
    found |= depends ? 0 : only(each->thread);
  }
  return found;
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
