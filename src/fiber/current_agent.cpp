// The calling agent, and the state that follows it: scopes, values, and what the layers below keep for each fiber.
#include "fiber/thread_agent.hpp"
#include "pirn/context/detail/per_fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {
/// Returns the running fiber; null on a plain thread and in a worker's scheduler.
fiber_control* fiber_here() noexcept {
  const worker* const w = current_worker();
  return w != nullptr && w->queue.runs_fiber() ? running_fiber(w) : nullptr;
}
}  // namespace

agent& current_agent() noexcept {
  if (worker* const w = current_worker()) {
    return *running_fiber(w);
  }
  return thread_agent::here();
}

inherited_context& inherited_context_of(agent& self) noexcept {
  if (self.kind() == agent_kind::thread) {
    return static_cast<thread_agent&>(self).inherited;
  }
  auto& f = static_cast<fiber_control&>(self);
  return f.is_child() ? static_cast<child_control&>(f).inherited : f.cold().inherited;
}

const inherited_context* inherited_context_here() noexcept {
  if (const worker* const w = current_worker()) {
    fiber_control& f = *running_fiber(w);
    return f.is_child() || f.has_cold_part() ? &inherited_context_of(f) : nullptr;
  }
  thread_agent* const known = thread_agent::here_if_known();
  return known != nullptr ? &known->inherited : nullptr;
}

void** c_coroutine_of_fiber(slot_access how) noexcept {
  static void* none = nullptr;
  fiber_control* const f = fiber_here();
  if (f == nullptr) {
    return nullptr;
  }
  return how == slot_access::write || f->has_cold_part() ? &f->cold().c_coroutine : &none;
}

void** usched_of_fiber(slot_access how) noexcept {
  static void* none[2] = {};
  fiber_control* const f = fiber_here();
  if (f == nullptr) {
    return nullptr;
  }
  return how == slot_access::write || f->has_cold_part() ? f->cold().usched : none;
}

unwinds_under_way* unwinds_of_fiber(slot_access how) noexcept {
  static constinit unwinds_under_way none;
  fiber_control* const f = fiber_here();
  if (f == nullptr) {
    return nullptr;
  }
  return how == slot_access::write || f->has_cold_part() ? &f->cold().unwinds : &none;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
