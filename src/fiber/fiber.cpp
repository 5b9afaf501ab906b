#include "pirn/fiber/fiber.hpp"

#include <cstdio>

#include "fiber/runtime_state.hpp"

namespace pirn::inline PIRN_ABI {

namespace {

void report_unhandled(std::uint64_t id, std::string_view name, std::exception_ptr what) noexcept {
  const char* text = "not derived from std::exception";
  try {
    std::rethrow_exception(what);
  } catch (const std::exception& e) {
    text = e.what();
    std::fprintf(stderr, "pirn: fiber %llu \"%.*s\" ended with an exception that nobody took: %s\n",
                 static_cast<unsigned long long>(id), static_cast<int>(name.size()), name.data(), text);
    return;
  } catch (...) {
  }
  std::fprintf(stderr, "pirn: fiber %llu \"%.*s\" ended with an exception that nobody took: %s\n",
               static_cast<unsigned long long>(id), static_cast<int>(name.size()), name.data(), text);
}

platform::atomic<unhandled_exception_handler> unhandled{&report_unhandled};

void take_failure(detail::fiber_control& f, std::uintptr_t outcome) noexcept {
  if (outcome == detail::join_failed) {
    unhandled.load(platform::memory_order_acquire)(f.number(), f.name(), std::move(f.cold().failure));
  }
}

}  // namespace

unhandled_exception_handler set_unhandled_exception_handler(unhandled_exception_handler handler) noexcept {
  return unhandled.exchange(handler != nullptr ? handler : &report_unhandled, platform::memory_order_acq_rel);
}

namespace detail {

namespace {

void free_block(worker* here, fiber_control* f) noexcept {
  const stack memory = f->memory;
  guarded_pool& pool = f->pool;
  f->~fiber_control();
  return_stack(here, pool, memory);
}

struct retire_commit : commit {
  fiber_control* ended;
  std::uintptr_t outcome;  ///< join_ended or join_failed
};

/// Runs on the context that follows an ended fiber: marks it as ended, wakes its joiner or frees it.
void retire(commit* last_wish) noexcept {
  fiber_control* const f = static_cast<retire_commit*>(last_wish)->ended;
  const std::uintptr_t outcome = static_cast<retire_commit*>(last_wish)->outcome;
  worker* const here = current_worker();
  f->sanitizer.destroy();
  here->count(here->ended);
  std::uintptr_t state = join_possible;
  // Once the word says ended, another thread may free the block and the stack.
  while (!f->join_word.compare_exchange_weak(state, state == join_possible ? outcome : join_waking,
                                             platform::memory_order_acq_rel, platform::memory_order_acquire)) {
  }
  if (state == join_possible) {
    return;
  }
  if (state == join_detached) {
    take_failure(*f, outcome);
    free_block(here, f);
    return;
  }
  const joiner waiting = *reinterpret_cast<joiner*>(state);
  if (waiting.who->claim(waiting.epoch, wake_reason::notified)) {
    make_runnable(waiting.who, true);
  }
  f->join_word.store(outcome, platform::memory_order_release);
}

/// The same for a fiber whose joiner, of the same worker, was made ready before the last switch.
void retire_joined(commit* last_wish) noexcept {
  fiber_control* const f = static_cast<retire_commit*>(last_wish)->ended;
  worker* const here = current_worker();
  f->sanitizer.destroy();
  here->count(here->ended);
  f->join_word.store(static_cast<retire_commit*>(last_wish)->outcome, platform::memory_order_release);
}

struct join_commit : commit {
  fiber_control* target;
  joiner* me;
};

void publish_joiner(commit* c) noexcept {
  auto* const request = static_cast<join_commit*>(c);
  const joiner me = *request->me;
  std::uintptr_t expected = join_possible;
  if (!request->target->join_word.compare_exchange_strong(expected, reinterpret_cast<std::uintptr_t>(request->me),
                                                          platform::memory_order_acq_rel,
                                                          platform::memory_order_acquire)) {
    if (me.who->claim(me.epoch, wake_reason::notified)) {
      make_runnable(me.who);
    }
  }
}

}  // namespace

void finish(bool failed) noexcept {
  worker* const w = current_worker();
  fiber_control* const self = running_fiber(w);
  self->forget_token();
  w->unlist(self);
  retire_commit last_wish{{&retire}, self, failed ? join_failed : join_ended};
  const std::uintptr_t state = self->join_word.load(platform::memory_order_acquire);
  if (state > join_failed) {
    // A joiner that only this worker can resume may be made ready already, which saves a trip through the scheduler;
    // and to the back, since other fibers of a batch end meanwhile, and it need not suspend for them.
    const joiner waiting = *reinterpret_cast<joiner*>(state);
    if (waiting.home == w && waiting.who->claim(waiting.epoch, wake_reason::notified)) {
      self->join_word.store(join_waking, platform::memory_order_relaxed);
      w->queue.push_back(static_cast<fiber_control*>(waiting.who));
      last_wish.run = &retire_joined;
    }
  }
  run_node* const next = --w->switches_left > 0 ? w->queue.leave() : w->queue.leave_to_scheduler();
  auto by = reinterpret_cast<arch::word>(w);
  auto what = reinterpret_cast<arch::word>(static_cast<commit*>(&last_wish));
  self->sanitizer.leave_for_good(next->sanitizer);
  arch::switch_to(self->state, next->state, by, what);
  __builtin_unreachable();
}

void stop_fiber(fiber_control* f) noexcept {
  if (f->request_stop()) {
    make_runnable(f);
  }
}

void follow_token(fiber_control* f, const stop_token& token) noexcept {
  f->cold().stop.target = f;
  f->cold().stop.attach(*token.state_,
                        [](stop_link& link) noexcept { stop_fiber(static_cast<fiber_stop_link&>(link).target); });
}

}  // namespace detail

namespace {
bool ended(std::uintptr_t join_word) noexcept {
  return join_word == detail::join_ended || join_word == detail::join_failed;
}
}  // namespace

wake_reason fiber::wait_for_end(const wait_options& how) noexcept {
  detail::fiber_control* const f = control_;
  if (ended(f->join_word.load(platform::memory_order_acquire))) [[likely]] {
    return wake_reason::notified;
  }
  detail::agent& self = detail::current_agent();
  std::uint64_t epoch = 0;
  if (!self.begin(detail::kind_of(how), epoch)) {
    return wake_reason::stopped;
  }
  detail::joiner me{&self, epoch, detail::current_worker()};
  detail::join_commit publish{{&detail::publish_joiner}, f, &me};
  const wake_reason reason = detail::block(self, epoch, how, publish);
  if (reason != wake_reason::notified) {
    auto published = reinterpret_cast<std::uintptr_t>(&me);
    if (f->join_word.compare_exchange_strong(published, detail::join_possible, platform::memory_order_acq_rel,
                                             platform::memory_order_acquire)) {
      return reason;
    }
  }
  // It has ended; on another worker the last steps, a few instructions, may still be under way.
  while (!ended(f->join_word.load(platform::memory_order_acquire))) {
    platform::yield_thread();
  }
  return wake_reason::notified;
}

std::exception_ptr fiber::release() noexcept {
  detail::fiber_control* const f = std::exchange(control_, nullptr);
  std::exception_ptr failure;
  if (f->join_word.load(platform::memory_order_acquire) == detail::join_failed) [[unlikely]] {
    failure = std::move(f->cold().failure);
  }
  detail::free_block(detail::current_worker(), f);
  return failure;
}

namespace {
void check_joinable(const detail::fiber_control* f) {
  if (f == nullptr) {
    throw std::system_error(std::make_error_code(std::errc::no_such_process), "pirn: join of a fiber that is none");
  }
  if (&detail::current_agent() == f) {
    throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                            "pirn: a fiber cannot join itself");
  }
}
}  // namespace

void fiber::join() {
  check_joinable(control_);
  static_cast<void>(wait_for_end({.stoppable = false, .what = "end of fiber", .object = control_}));
  if (const std::exception_ptr failure = release()) {
    std::rethrow_exception(failure);
  }
}

std::expected<void, wait_error> fiber::join(platform::time_point deadline) {
  check_joinable(control_);
  switch (wait_for_end({.deadline = deadline, .what = "end of fiber", .object = control_})) {
    case wake_reason::timed_out:
      return std::unexpected(wait_error::timed_out);
    case wake_reason::stopped:
      return std::unexpected(wait_error::stopped);
    case wake_reason::notified:
      break;
  }
  if (const std::exception_ptr failure = release()) {
    std::rethrow_exception(failure);
  }
  return {};
}

void fiber::detach() noexcept {
  if (control_ == nullptr) {
    return;
  }
  std::uintptr_t expected = detail::join_possible;
  if (control_->join_word.compare_exchange_strong(expected, detail::join_detached, platform::memory_order_acq_rel,
                                                  platform::memory_order_acquire)) {
    control_ = nullptr;
    return;
  }
  reset();
}

void fiber::request_stop() noexcept {
  if (control_ != nullptr) {
    detail::stop_fiber(control_);
  }
}

void fiber::reset() noexcept {
  if (control_ == nullptr) {
    return;
  }
  request_stop();
  static_cast<void>(wait_for_end({.stoppable = false, .what = "end of fiber", .object = control_}));
  take_failure(*control_, control_->join_word.load(platform::memory_order_acquire));
  static_cast<void>(release());
}

}  // namespace pirn::inline PIRN_ABI
