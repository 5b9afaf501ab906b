// The events of a traced runtime, and the counters kept with them. To every fast path its workers look as if exceptions
// were in flight and as if they had no stack at hand, and its fibers as if they were not pinned. So all operations take
// the slow paths, which come here, and the fast paths need not ask.
#include "pirn/fiber/expert/trace.hpp"

#include <algorithm>

#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

void tell(const runtime_state& owner, trace_event::kind what, fiber_control& f, const wait_options* wait = nullptr) {
  const worker* const here = current_worker();
  const bool by_fiber = (what == trace_event::kind::spawned || what == trace_event::kind::woken) && here != nullptr &&
                        here->queue.runs_fiber();
  owner.options.trace({.what = what,
                       .fiber = f.number(),
                       .name = f.name(),
                       .by = by_fiber ? running_fiber(here)->number() : 0,
                       .worker = here != nullptr && &here->owner == &owner ? static_cast<int>(here->index) : -1,
                       .reason = wait != nullptr ? wait->what : nullptr,
                       .object = wait != nullptr ? wait->object : nullptr});
}

}  // namespace

void trace_spawned(fiber_control* f) noexcept {
  f->cold().ready_since = platform::now();
  tell(f->home()->owner, trace_event::kind::spawned, *f);
}

void trace_woken(fiber_control* f) noexcept {
  f->cold().ready_since = platform::now();
  tell(f->home()->owner, trace_event::kind::woken, *f);
}

void trace_resumed(worker* w, run_node* next) noexcept {
  if (next == w->queue.scheduler()) {
    return;
  }
  auto* const f = static_cast<fiber_control*>(next);
  const auto waited = platform::now() - f->cold().ready_since;
  platform::atomic<platform::duration::rep>& longest = w->counters.longest_wait;
  longest.store(std::max(longest.load(platform::memory_order_relaxed), waited.count()), platform::memory_order_relaxed);
  tell(w->owner, f->fresh() ? trace_event::kind::started : trace_event::kind::resumed, *f);
}

void trace_suspended(worker* w, run_node* self, const wait_options* wait) noexcept {
  static constexpr wait_options yields{.what = "its turn"};
  auto* const f = static_cast<fiber_control*>(self);
  if (wait == nullptr) {
    f->cold().ready_since = platform::now();
  }
  tell(w->owner, trace_event::kind::suspended, *f, wait != nullptr ? wait : &yields);
}

void trace_ended(worker* w, fiber_control* f) noexcept {
  tell(w->owner, trace_event::kind::ended, *f);
  w->request_tick();  // so that the scheduler reports the fiber that runs next
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
