// Operations of a fiber on itself: sleep, migration, and questions about itself.
#include "pirn/fiber/this_fiber.hpp"

#include "fiber/runtime_state.hpp"
#include "fiber/thread_agent.hpp"
#include "pirn/fiber/detail/suspend.hpp"
#include "pirn/fiber/scope.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace this_fiber {

std::expected<void, wait_error> sleep_until(time_limit when) noexcept {
  detail::no_entry none;
  const wake_reason why = detail::suspend(detail::current_agent(), {.deadline = when, .what = "time to pass"}, none);
  return why == wake_reason::timed_out ? std::expected<void, wait_error>{} : std::unexpected(detail::error_of(why));
}

std::expected<void, wait_error> sleep_for(time_span how_long) noexcept { return sleep_until(how_long); }

namespace {

struct move_action : detail::post_switch_action {
  detail::worker* to;
  detail::fiber_control* who;
};

}  // namespace

std::expected<void, migrate_error> migrate_to(std::size_t worker) noexcept {
  detail::worker* const w = detail::current_worker();
  if (w == nullptr || !detail::running_fiber(w)->migratable()) {
    return std::unexpected(migrate_error::not_migratable);
  }
  const auto& all = w->owner.workers;
  if (worker >= all.size()) {
    return std::unexpected(migrate_error::no_such_worker);
  }
  if (worker == w->index) {
    return {};
  }
  detail::fiber_control* const self = detail::running_fiber(w);
  if (self->migration_disabled()) {
    return std::unexpected(migrate_error::has_deadline);
  }
  const wait_options nothing{.stoppable = false, .what = "another worker"};
  move_action leave{{[](detail::post_switch_action* c) noexcept {
                      const auto* const request = static_cast<move_action*>(c);
                      detail::worker* const to = request->to;
                      request->who->move_to(to);
                      to->push_remote(request->who);
                    }},
                    all[worker].get(),
                    self};
  detail::switch_out(w, nothing, &leave);
  return {};
}

fiber_id get_id() noexcept {
  const std::uint64_t mine = number();
  return mine != 0 ? fiber_id(mine) : fiber_id::of_this_thread();
}

std::uint64_t number() noexcept {
  const detail::worker* const w = detail::current_worker();
  return w != nullptr ? detail::running_fiber(w)->number() : 0;
}

std::string_view name() noexcept {
  const detail::worker* const w = detail::current_worker();
  return w != nullptr ? detail::running_fiber(w)->name() : "";
}

std::expected<void, wait_error> check_stop() noexcept {
  const detail::worker* const w = detail::current_worker();
  const detail::agent* const self = w != nullptr ? static_cast<const detail::agent*>(detail::running_fiber(w))
                                                 : detail::thread_agent::here_if_known();
  if (self == nullptr) {
    return {};
  }
  return detail::unless_stopped(self->stop_reason(), deadline());
}

bool stop_requested() noexcept { return !check_stop(); }

platform::time_point deadline() noexcept {
  const detail::inherited_context* const here = detail::inherited_context_here();
  return here != nullptr && here->innermost != nullptr ? here->innermost->deadline() : platform::never;
}

}  // namespace this_fiber

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
