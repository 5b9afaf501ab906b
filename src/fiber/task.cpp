// Runs chains of tasks: for a fiber that awaits the end, and spawned ones.
#include "pirn/fiber/spawned.hpp"

#include <system_error>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

worker& worker_for_tasks() {
  worker* const here = current_worker();
  if (here == nullptr) {
    throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                            "pirn: a task awaited outside a fiber; use runtime::run");
  }
  static_cast<void>(coroutine_runner::of(*here));
  return *here;
}

void run_tasks(task_root& root, std::coroutine_handle<> from, platform::time_point deadline) noexcept {
  worker& home = root.home();
  root.inherit_values();
  if (running_fiber(&home)->migratable()) {
    // The fiber may resume elsewhere after a call in the task that suspends, and the task may not.
    root.continuation = from;
    home.coroutines->schedule(root);
  } else {
    home.coroutines->begin(root, from);
  }
  wait_options options{.deadline = deadline, .wakeable_by = awaited::task, .what = "end of task"};
  options.object = static_cast<const coroutine_agent*>(&root);
  const wake_reason why = root.ended.wait(options);
  if (why != wake_reason::notified) {
    if (root.request_stop(why == wake_reason::stopped ? wake_reason::stopped : wake_reason::expired)) {
      home.coroutines->schedule(root);
    }
    options.deadline = platform::never;
    options.stoppable = false;
    static_cast<void>(root.ended.wait(options));
  }
  root.release_values();
}

void spawned_root::begin() noexcept {
  inherit_values();
  home().count(home().spawned);
  continuation = frame;
  coroutine_runner::here().push(*this);
}

void spawned_root::stop(wake_reason why) noexcept {
  if (request_stop(why)) {
    home().coroutines->schedule(*this);
  }
}

wake_reason spawned_root::wait(platform::time_point deadline, bool stoppable) noexcept {
  return ended.wait({.deadline = deadline,
                     .stoppable = stoppable,
                     .wakeable_by = awaited::task,
                     .what = "end of task",
                     .object = static_cast<const coroutine_agent*>(this)});
}

namespace {
/// Destroys a chain that has ended without a joiner.
void destroy_unjoined(spawned_root* root) noexcept {
  if (std::exception_ptr what = root->promise.take_exception()) {
    report_unhandled(*root, std::move(what));
  }
  delete root;
}
}  // namespace

void spawned_root::abandon() noexcept {
  if (ended.abandon()) {
    destroy_unjoined(this);
  }
}

void spawned_root::end(task_root& self) noexcept {
  auto& root = static_cast<spawned_root&>(self);
  worker& home = root.home();
  root.release_values();
  if (root.ended.set()) {
    destroy_unjoined(&root);
  }
  home.count(home.ended);
}

void scoped_root::begin_in_scope() noexcept {
  owner.children_.add();
  attach(owner.stops_, [](stop_link& link) noexcept -> stop_list* {
    static_cast<scoped_root&>(link).stop(link.why());
    return nullptr;
  });
  spawned_root::begin();
}

void scoped_root::end(task_root& self) noexcept {
  auto& root = static_cast<scoped_root&>(static_cast<spawned_root&>(self));
  worker& home = root.home();
  scope& owner = root.owner;
  root.release_values();
  if (const std::exception_ptr what = root.promise.take_exception()) {
    owner.fail(what);
  }
  root.detach();
  delete &root;
  owner.children_.leave();
  home.count(home.ended);
}

void spawn_in(scope& owner, std::coroutine_handle<> frame, task_promise_base& promise) {
  auto* const root = new scoped_root(worker_for_tasks(), frame, promise, owner);
  promise.join_chain(*root, nullptr);
  root->begin_in_scope();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
