// Plain OS threads that wait: their agents, their sleep and what wakes them.
#include "fiber/thread_agent.hpp"

#include <memory>

#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {
platform::spinlock free_lock;
thread_agent* free_agents = nullptr;
}  // namespace

/// Gives the agent back when its thread ends.
struct agent_of_thread {
  thread_agent* held = nullptr;
  agent_of_thread() = default;
  agent_of_thread(const agent_of_thread&) = delete;
  agent_of_thread& operator=(const agent_of_thread&) = delete;
  ~agent_of_thread() {
    if (held != nullptr) {
      held->give_back();
    }
  }
};

void thread_agent::give_back() noexcept {
  const platform::quiet one_step;
  const platform::spin_guard guard(free_lock);
  next_free_ = free_agents;
  free_agents = this;
}

thread_agent* thread_agent::take() noexcept {
  const platform::quiet one_step;  // the result depends on what earlier threads have left
  {
    const platform::spin_guard guard(free_lock);
    if (thread_agent* const left = free_agents) {
      free_agents = left->next_free_;
      return left;
    }
  }
  return new thread_agent;  // without memory for one word there is no way to wait; bad_alloc ends the process
}

thread_agent* thread_agent::here_if_known() noexcept { return platform::per_thread<agent_of_thread>::here().held; }

thread_agent& thread_agent::here() noexcept {
  agent_of_thread& mine = platform::per_thread<agent_of_thread>::here();
  if (mine.held == nullptr) {
    mine.held = take();
    std::construct_at(&mine.held->wakeups_, 0U);  // a replay finds the value that the first run has found
  }
  return *mine.held;
}

void thread_agent::begin_sleep(platform::time_point deadline) noexcept {
  before_ = wakeups_.load(platform::memory_order_relaxed);
  hosted_worker_ = caller_worker();
  if (hosted_worker_ == nullptr && deadline == platform::never) {
    counted_ = true;
    waiting_threads.add();
  }
}

void thread_agent::end_sleep(const wait_record& wait) noexcept {
  if (hosted_worker_ != nullptr) {
    hosted_worker_->run_on_caller(&wakeups_, before_);
    return;
  }
  platform::time_point deadline = wait.options.deadline;
  // A claim is not enough to continue: the claimer reads the waiter's node until it makes the waiter runnable.
  while (wakeups_.load(platform::memory_order_acquire) == before_) {
    if (!platform::futex_wait(wakeups_, before_, deadline)) {
      if (claim(wait.epoch, wake_reason::timed_out)) {
        break;
      }
      deadline = platform::never;
    }
  }
}

void thread_agent::wake() noexcept {
  worker* const hosted = hosted_worker_;
  if (hosted == nullptr) {
    if (counted_) {
      counted_ = false;
      waiting_threads.remove();
    }
    wakeups_.fetch_add(1, platform::memory_order_release);
    platform::futex_wake(&wakeups_, 1);
  } else if (hosted == current_worker()) {
    hosted->probe.thread_was_woken();
    wakeups_.fetch_add(1, platform::memory_order_release);
    hosted->request_tick();
  } else {
    // Once its word has changed, the thread may continue and end its runtime.
    const std::shared_ptr<idle_workers> kept = hosted->idle;
    const unsigned its_worker = hosted->index;
    hosted->probe.thread_was_woken();
    wakeups_.fetch_add(1, platform::memory_order_release);
    kept->unpark(its_worker);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
