// Runs a chain of tasks for a fiber that awaits its end.
#include "pirn/fiber/task.hpp"

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
    home.coroutines->resume(root, from);
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

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
