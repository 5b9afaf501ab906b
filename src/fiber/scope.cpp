// Scopes: their children, stops, deadlines and exceptions.
#include "pirn/fiber/scope.hpp"

#include <algorithm>
#include <system_error>

#include "fiber/runtime_state.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/detail/left_by_exit.hpp"
#include "pirn/fiber/fiber_local.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

/// The last exception that a fiber met in a scope, and the exceptions that came with it.
struct last_exception {
  std::exception_ptr first;
  std::vector<std::exception_ptr> others;
};
constinit fiber_local<last_exception> met;

std::vector<std::exception_ptr> attached_to(const std::exception_ptr& what) {
  const last_exception* const last = met.find();
  return last != nullptr && last->first == what ? last->others : std::vector<std::exception_ptr>();
}

[[noreturn]] void misused(const char* what) noexcept { detail::fail_contract("a scope is ", what); }

detail::runtime_state* runtime_of_caller() {
  const detail::worker* const here = detail::current_worker();
  if (here == nullptr) {
    throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                            "pirn: a scope on a plain thread needs a runtime for its children: scope(runtime)");
  }
  return &here->owner;
}

/// Returns the worker for children. Never the caller's own for children that begin at once: `spawn` checks those first.
int worker_for_children(const scope_options& options) noexcept {
  return options.migratable ? spawn_options::any_worker : options.worker;
}

}  // namespace

std::vector<std::exception_ptr> attached_exceptions() { return attached_to(std::current_exception()); }

namespace detail {

void rethrow_with(std::exception_ptr first, std::vector<std::exception_ptr> others) {
  std::vector<std::exception_ptr> all = attached_to(first);
  all.insert(all.end(), others.begin(), others.end());
  if (!all.empty() || met.find() != nullptr) {
    met.emplace(first, std::move(all));
  }
  std::rethrow_exception(std::move(first));
}

bool race_state::try_win(std::size_t index, std::exception_ptr exception) noexcept {
  const platform::spin_guard guard(lock_);
  if (winner_ != none) {
    return false;
  }
  winner_ = index;
  winner_exception_ = std::move(exception);
  return true;
}

void race_state::record_exception(std::exception_ptr exception) {
  const platform::spin_guard guard(lock_);
  exceptions_.push_back(std::move(exception));
}

std::size_t race_state::winner() {
  if (winner_exception_ != nullptr) {
    rethrow_with(std::move(winner_exception_), {});
  }
  if (winner_ == none) {
    std::exception_ptr first = std::move(exceptions_.front());
    exceptions_.erase(exceptions_.begin());
    rethrow_with(std::move(first), std::move(exceptions_));
  }
  return winner_;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as of every control block
std::uintptr_t child_control::keep_exception(std::exception_ptr what) noexcept {
  inherited.innermost->fail(what);
  return join_ended;
}

void child_control::body_ended() noexcept {
  if (has_cold_part()) {
    end_cold();
  }
  release(inherited.values);
  detach();
  inherited.innermost->children_.leave();
}

}  // namespace detail

scope::scope(const scope_options& options)
    : opener_(detail::current_agent()),
      runtime_(runtime_of_caller()),
      worker_(worker_for_children(options)),
      migratable_(options.migratable) {
  open(options);
}

scope::scope(runtime& where, const scope_options& options)
    : opener_(detail::current_agent()),
      runtime_(where.state_),
      worker_(worker_for_children(options)),
      migratable_(options.migratable) {
  open(options);
  if (opener_.kind() == detail::agent_kind::thread && own_deadline_ != platform::never) {
    try {
      watch_ = where.spawn(
          [this] {
            if (this_fiber::sleep_until(own_deadline_)) {
              stop(wake_reason::expired);
            }
          },
          {.name = "deadline of a scope"});
    } catch (...) {
      close();
      throw;
    }
  }
}

scope::scope(scope& outer, std::size_t wake_at)
    : opener_(outer.opener_),
      runtime_(outer.runtime_),
      worker_(outer.worker_),
      migratable_(outer.migratable_),
      children_(wake_at) {
  outer.check_opener();
  open({});
}

void scope::open(const scope_options& options) {
  if (options.migratable) {
    const detail::worker* const here = detail::current_worker();
    if (here == nullptr || &here->owner != runtime_ || !detail::running_fiber(here)->migratable()) {
      throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                              "pirn: a migratable scope opened by a fiber that is not migratable");
    }
  }
  detail::inherited_context& here = detail::inherited_context_of(opener_);
  origin_ = detail::block_opened(opener_, reinterpret_cast<arch::word>(__builtin_frame_address(0)));
  outer_ = here.innermost;
  own_deadline_ = options.deadline;
  here.innermost = this;
  follow_outer();
  token_.emplace(options.stop, stopper{this});
  inherit_deadline();
}

void scope::follow_outer() noexcept {
  nested_ = outer_ != nullptr && &outer_->opener_ == &opener_;
  const auto follow = [](detail::stop_link& link) noexcept {
    return static_cast<scope&>(link).begin_to_stop(link.why());
  };
  if (nested_) {
    attach(outer_->stops_, follow);
  } else if (opener_.kind() == detail::agent_kind::fiber) {
    attach(static_cast<detail::fiber_control&>(opener_).cold().scopes, follow);
  }
  // A stop that came before the fiber had a list shows only in the fiber's flags.
  if (const wake_reason why = opener_.stop_reason(); why != wake_reason::notified) {
    stop(why);
  }
}

void scope::inherit_deadline() noexcept {
  const platform::time_point nearest = outer_ != nullptr ? std::min(own_deadline_, outer_->deadline()) : own_deadline_;
  deadline_.store(nearest, platform::memory_order_relaxed);
  // The deadline of an outer scope comes as its stop.
  if (own_deadline_ == nearest && nearest != platform::never && opener_.kind() == detail::agent_kind::fiber &&
      expiry_.target == nullptr) {
    expiry_.when = nearest;
    expiry_.target = this;
    expiry_.call = [](call_timer& due) noexcept { static_cast<expiry&>(due).target->stop(wake_reason::expired); };
    auto& opener = static_cast<detail::fiber_control&>(opener_);
    migration_disabled_ = opener.hold();
    opener.home()->timers.insert(expiry_);
  }
}

scope::~scope() {
  check_opener();
  if (children_.any()) {
    request_stop();
  }
  if (!detail::fibers_are_left()) {
    wait_for(0);  // also if no child is left: the last may not have released the lock yet
    detail::await_second_halves_in(*this);
  }
  close();
}

void scope::close() noexcept {
  detail::inherited_context& here = detail::inherited_context_of(opener_);
  if (here.innermost != this) {
    misused("closed before a scope that was opened later");
  }
  if (expiry_.armed()) {
    static_cast<detail::fiber_control&>(opener_).home()->timers.cancel(expiry_);
  }
  if (migration_disabled_) {
    static_cast<detail::fiber_control&>(opener_).let_go();
  }
  // Once these are gone, nothing can stop the scope any more.
  watch_ = {};
  token_.reset();
  detach();
  here.innermost = outer_;
  detail::block_closed(origin_);
  opener_.end_interruption([this]() noexcept { return nested_ ? outer_->stops_.why() : wake_reason::notified; });
  exceptions_.report(opener_);
}

void scope::check_opener() const noexcept {
  if (&detail::current_agent() != &opener_) {
    misused("joined, closed or waited on by a fiber or thread other than its opener");
  }
}

void scope::adopt(detail::child_control& child) noexcept {
  children_.add();
  child.inherited.innermost = this;
  if (const detail::inherited_context* const here = detail::inherited_context_here(); here != nullptr) {
    child.inherited.values = here->values;
    if (here->values != nullptr) {
      here->values->references.fetch_add(1, platform::memory_order_relaxed);
    }
  }
  child.attach(stops_, [](detail::stop_link& link) noexcept {
    return detail::begin_to_stop(static_cast<detail::child_control*>(&link), link.why());
  });
}

void scope::fail(const std::exception_ptr& what) noexcept {
  const bool first = exceptions_.keep_first(what);
  request_stop();
  try {
    std::vector<std::exception_ptr> others = attached_to(what);
    if (!first) {
      others.insert(others.begin(), what);
    }
    exceptions_.keep(others);
  } catch (const std::bad_alloc&) {
    detail::report_unhandled(opener_, what);
  }
}

void scope::stop(wake_reason why) noexcept {
  if (stops_.request(why)) {
    interruption_.interrupt(opener_, why);
  }
}

detail::stop_list* scope::begin_to_stop(wake_reason why) noexcept {
  if (!stops_.begin(why)) {
    return nullptr;
  }
  // The scope lasts as long as the call of its link, even if the opener continues and closes it.
  interruption_.interrupt(opener_, why);
  return &stops_;
}

void scope::join() {
  check_opener();
  wait_for(0);
  exceptions_.rethrow();
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
