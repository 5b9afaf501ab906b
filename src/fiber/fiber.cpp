// The end of a fiber: join, detach, stop, and exceptions that no joiner takes.
#include "pirn/fiber/fiber.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fiber/runtime_state.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/detail/suspend.hpp"
#include "pirn/fiber/detail/worker_stack.hpp"
#include "pirn/fiber/fiber_local.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

void write_unhandled(std::uint64_t id, std::string_view name, std::exception_ptr what) noexcept {
  const auto report = [&](const char* text) {
    platform::end_exploration("exception", text);
    std::fprintf(stderr, "pirn: fiber %llu \"%.*s\" ended with an unhandled exception: %s\n",
                 static_cast<unsigned long long>(id), static_cast<int>(name.size()), name.data(), text);
  };
  try {
    std::rethrow_exception(std::move(what));
  } catch (const std::exception& e) {
    report(e.what());
  } catch (...) {
    report("not derived from std::exception");
  }
}

platform::atomic<unhandled_exception_handler> unhandled{&write_unhandled};

void report_if_failed(detail::fiber_control& f, std::uintptr_t outcome) noexcept {
  if (outcome == detail::join_failed) {
    detail::report_unhandled(f, std::move(f.cold().exception));
  }
}

}  // namespace

unhandled_exception_handler set_unhandled_exception_handler(unhandled_exception_handler handler) noexcept {
  return unhandled.exchange(handler != nullptr ? handler : &write_unhandled, platform::memory_order_acq_rel);
}

namespace detail {

std::exception_ptr exception_of_fiber(const fiber_control& whose) noexcept {
  std::exception_ptr what = std::current_exception();
  if (what == nullptr) {
    // Little of the stack, which may be a bounded fiber's, for the sake of a message that is printed once.
    char text[96] = "fiber ";
    char* at = std::to_chars(text + 6, text + 32, whose.number()).ptr;
    const std::string_view name = std::string_view(whose.name()).substr(0, 48);
    for (const std::string_view part : {std::string_view(" \""), name, std::string_view("\"")}) {
      at = std::copy(part.begin(), part.end(), at);
    }
    *at = '\0';
    what = exception_of(text);
  }
  return what;
}

void throw_not_joinable() {
  throw std::system_error(std::make_error_code(std::errc::no_such_process),
                          "pirn: join() called on an empty fiber handle");
}
void throw_joins_itself() {
  throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                          "pirn: a fiber cannot join itself");
}
void throw_no_runtime() {
  throw std::system_error(std::make_error_code(std::errc::operation_not_permitted),
                          "pirn: spawn() called outside a fiber; use runtime::spawn");
}
void throw_no_fiber(std::error_code why) {
  throw std::system_error(
      why, why == std::make_error_code(std::errc::invalid_argument)
               ? "pirn: cannot spawn a fiber: no such worker, or options that a fiber on a small stack cannot have"
               : "pirn: cannot spawn a fiber");
}

void rethrow_exception_of(fiber_control* f) {
  std::exception_ptr exception = std::move(f->cold().exception);
  free_block(current_worker(), f, join_failed);
  std::rethrow_exception(std::move(exception));
}

void report_unhandled(const agent& whose, std::exception_ptr what) noexcept {
  const bool is_fiber = whose.kind() == agent_kind::fiber;
  const worker* const w = current_worker();
  const auto report = [&] {
    unhandled.load(platform::memory_order_acquire)(whose.number(),
                                                   is_fiber ? static_cast<const fiber_control&>(whose).name()
                                                   : whose.kind() == agent_kind::coroutine ? "a task"
                                                                                           : "a plain thread",
                                                   std::move(what));
  };
  w != nullptr && !w->queue.runs_fiber() ? as_plain_thread(report) : report();
}

void fiber_control::end_cold() noexcept {
  fiber_cold_part& part = cold();
  end_locals(part.locals);
  part.stop.detach();
}
namespace {
/// Calls `body`, which allocates or frees, where there is room for that.
template <class F>
void where_there_is_room(const F& body) noexcept {
  if (worker* const w = current_worker()) {
    on_worker_stack(w, body);
  } else {
    body();
  }
}
}  // namespace

void fiber_control::make_cold_elsewhere() noexcept {
  const auto make = [this]() noexcept {
    auto* const part = new fiber_cold_part;  // without memory for it bad_alloc ends the process
    memory = stack(memory.limit(), memory.top(), memory.owner(), reinterpret_cast<std::uintptr_t>(part));
  };
  where_there_is_room(make);
}

stack_result with_cold_part(const stack_result& found) noexcept {
  if (!found) {
    return found;
  }
  fiber_cold_part* part = nullptr;
  where_there_is_room([&part]() noexcept { part = new (std::nothrow) fiber_cold_part; });
  const stack& memory = found.value;
  if (part == nullptr) {
    small_stacks::give_back(memory);
    return {stack{}, stack_error::out_of_memory};
  }
  return {stack(memory.limit(), memory.top(), memory.owner(), reinterpret_cast<std::uintptr_t>(part))};
}
void give_back_unused(const stack& memory) noexcept {
  if (auto* const part = reinterpret_cast<fiber_cold_part*>(memory.slot())) {
    where_there_is_room([part]() noexcept { delete part; });
  }
  small_stacks::give_back(memory);
}

void fiber_control::destroy_cold() noexcept {
  if (small_stacks::has(memory)) {
    delete cold_place();
  } else {
    cold_place()->~fiber_cold_part();
  }
}

void run_post_switch(arch::word pending) noexcept {
  if ((pending & 1) != 0) {
    retire(reinterpret_cast<fiber_control*>(pending & ~arch::word{63}), (pending >> 1) & 7);
  } else {
    auto* const publish = reinterpret_cast<post_switch_action*>(pending);
    publish->run(publish);
  }
}

void run_post_switch_at_entry(arch::word pending) noexcept { run_post_switch(pending); }

std::uintptr_t end_with_cold_part(worker* w, fiber_control* self, std::uintptr_t outcome) noexcept {
  self->end_cold();
  w = current_worker();  // it may have suspended
  if (w->forking()) {
    w->stop_forking();
  }
  if (w->traced != 0) {
    trace_ended(w, self);
  }
  if (outcome != join_failed) {
    return join_ended_cold;
  }
  std::uintptr_t state = join_possible;
  if (self->join_word.compare_exchange_strong(state, join_remote, platform::memory_order_acq_rel,
                                              platform::memory_order_acquire) ||
      state != join_detached) {
    return join_failed;  // published at once: the exception is for the handle
  }
  report_if_failed(*self, join_failed);
  return join_ended_cold;
}

void retire(fiber_control* f, std::uintptr_t outcome) noexcept {
  f->release_block();
  // Its worker had no place for this stack when the fiber ended. A sanitizer keeps it with the block.
  if (std::is_empty_v<sanitizer_state> && outcome == join_ended && f->memory) {
    give_stack_back(current_worker(), f->memory);
    f->memory.forget();
  }
  std::uintptr_t state = join_possible;
  // Once the word says ended, another thread may free the block and the stack.
  while (!f->join_word.compare_exchange_weak(state, is_joinable(state) ? outcome : join_waking,
                                             platform::memory_order_acq_rel, platform::memory_order_acquire)) {
  }
  if (is_joinable(state)) {
    return;
  }
  if (state == join_detached) {
    report_if_failed(*f, outcome);
    free_block(current_worker(), f, outcome);
    return;
  }
  const joiner waiting = *reinterpret_cast<const joiner*>(state);
  if (waiting.handle.claim(wake_reason::notified)) {
    schedule(*waiting.handle.agent(), placement::back);
  }
  f->join_word.store(outcome, platform::memory_order_release);
}

void join_entry::publish() noexcept {
  fiber_control* const f = target;
  const waker handle = me.handle;  // once the word has the joiner, this entry may be gone
  std::uintptr_t state = f->join_word.load(platform::memory_order_acquire);
  while (is_joinable(state)) {
    if (f->join_word.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(&me), platform::memory_order_acq_rel,
                                           platform::memory_order_acquire)) {
      return;
    }
  }
  if (handle.claim(wake_reason::notified)) {
    schedule(*handle.agent(), placement::front);
  }
}

std::uintptr_t end_if_known(worker* here, fiber_control* f) noexcept {
  std::uintptr_t state = f->join_word.load(platform::memory_order_acquire);
  if (state == join_possible) {
    if (here != nullptr && f->home() == here) {
      return f->is_pinned_to(here) && f->ended_here() != join_possible ? here->claim_deferred(f) : join_possible;
    }
    if (f->join_word.compare_exchange_strong(state, join_remote, platform::memory_order_acq_rel,
                                             platform::memory_order_acquire)) {
      state = join_remote;
      platform::heavy_fence();  // pairs with the light fence of a fiber that ends
      if (f->deferred() && f->join_word.compare_exchange_strong(state, join_detached, platform::memory_order_acq_rel,
                                                                platform::memory_order_acquire)) {
        return join_left;
      }
    }
  }
  return has_ended(state) ? state : join_possible;
}

wake_reason join_entry::remove_after_wait(const agent& self) noexcept {
  const wake_reason reason = self.reason();
  if (reason != wake_reason::notified) {
    auto published = reinterpret_cast<std::uintptr_t>(&me);
    if (target->join_word.compare_exchange_strong(published, join_remote, platform::memory_order_acq_rel,
                                                  platform::memory_order_acquire)) {
      return reason;
    }
  }
  // It has ended; on another worker the last steps, a few instructions, may still be under way.
  while (!has_ended(outcome = target->join_word.load(platform::memory_order_acquire))) {
    platform::yield_thread();
  }
  return reason;
}

stop_list* begin_to_stop(fiber_control* f, wake_reason why) noexcept {
  if (f->request_stop(why)) {
    schedule(*f, placement::front);
  }
  // Dekker with the opening of a scope, in one word: the side that comes second sees the other's bit.
  return f->has_cold_part() && f->cold().scopes.begin(why) ? &f->cold().scopes : nullptr;
}

void stop_fiber(fiber_control* f, wake_reason why) noexcept {
  if (stop_list* const scopes = begin_to_stop(f, why)) {
    scopes->walk();
  }
}

void follow_token(fiber_control* f, const stop_token& token) noexcept {
  fiber_stop_link& link = f->cold().stop;
  link.target = f;
  link.token = token;
  link.attach(*token.state_, [](stop_link& own) noexcept {
    return begin_to_stop(static_cast<fiber_stop_link&>(own).target, wake_reason::stopped);
  });
}

std::uintptr_t await_end(fiber_control* f, const wait_options& options, wake_reason& reason) noexcept {
  if (const std::uintptr_t outcome = end_if_known(current_worker(), f); outcome != join_possible) {
    return outcome;
  }
  join_entry entry{f};
  reason = suspend(current_agent(), options, entry);
  return entry.outcome;
}

}  // namespace detail

namespace {
wait_options end_of(const detail::fiber_control* f) noexcept {
  return {.stoppable = false, .wakeable_by = awaited::fiber, .what = "end of fiber", .object = f};
}
}  // namespace

void fiber::join_same_worker(detail::worker* here) {
  detail::fiber_control* const f = control_;
  detail::fiber_control* const self = detail::running_fiber(here);
  if (self == f) [[unlikely]] {
    detail::throw_joins_itself();
  }
  // No other thread looks at the join word meanwhile, so a plain store suffices, and nothing needs to wait until the
  // caller is switched out.
  detail::joiner me;
  detail::direct_entry entry{[&](const waker& handle) {
                               me.handle = handle;
                               f->join_word.store(
                                   reinterpret_cast<std::uintptr_t>(&me) | detail::joiner::same_worker_bit,
                                   platform::memory_order_relaxed);
                             },
                             detail::does_nothing{}, detail::only_notified};
  const wait_options options = end_of(f);
  detail::suspend(detail::pinned_way{here}, *self, detail::wait_kind::single_waker, options, entry);
  end_join(f->join_word.load(platform::memory_order_acquire));
}

void fiber::join_slow() {
  if (control_ == nullptr) {
    detail::throw_not_joinable();
  }
  if (&detail::current_agent() == control_) {
    detail::throw_joins_itself();
  }
  // A child that no worker has taken yet runs here at once: its data is in this processor's cache, and the caller has
  // nothing else to do. Thieves take the oldest, which are more work.
  if (detail::worker* const here = detail::current_worker(); here != nullptr && here->begin_next(control_)) {
    join_same_worker(here);
    return;
  }
  wake_reason ignored{};
  end_join(detail::await_end(control_, end_of(control_), ignored));
}

PIRN_ALWAYS_INLINE void fiber::end_join(std::uintptr_t outcome) {
  detail::fiber_control* const f = std::exchange(control_, nullptr);
  if (outcome == detail::join_failed) [[unlikely]] {
    detail::rethrow_exception_of(f);
  }
  if (outcome != detail::join_left) {
    detail::free_block(detail::current_worker(), f, outcome);
  }
}

std::expected<void, wait_error> fiber::join(time_limit deadline) {
  if (control_ == nullptr) {
    detail::throw_not_joinable();
  }
  if (&detail::current_agent() == control_) {
    detail::throw_joins_itself();
  }
  wake_reason reason{};
  const std::uintptr_t outcome =
      detail::await_end(control_, {.deadline = deadline, .what = "end of fiber", .object = control_}, reason);
  return end_join(outcome, reason);
}

std::expected<void, wait_error> fiber::end_join(std::uintptr_t outcome, wake_reason reason) {
  if (outcome == detail::join_possible) {
    return std::unexpected(detail::error_of(reason));
  }
  end_join(outcome);
  return {};
}

void fiber::detach() noexcept {
  if (control_ == nullptr) {
    return;
  }
  std::uintptr_t state = control_->join_word.load(platform::memory_order_acquire);
  while (detail::is_joinable(state)) {
    if (control_->join_word.compare_exchange_weak(state, detail::join_detached, platform::memory_order_acq_rel,
                                                  platform::memory_order_acquire)) {
      control_ = nullptr;
      return;
    }
  }
  reset();
}

void fiber::request_stop() noexcept {
  if (control_ != nullptr) {
    detail::stop_fiber(control_, wake_reason::stopped);
  }
}

void fiber::reset() noexcept {
  if (control_ != nullptr) {
    end(control_);
    control_ = nullptr;
  }
}

void fiber::end(detail::fiber_control* f) noexcept {
  if (&detail::current_agent() == f) {
    detail::fail_contract("a fiber destroys its own handle, which would wait for the fiber forever; detach it");
  }
  if (const detail::worker* const home = f->home();
      home != nullptr && home->owner.abandoned.load(platform::memory_order_acquire)) [[unlikely]] {
    return;  // the process ends, and the fiber never does
  }
  detail::stop_fiber(f, wake_reason::stopped);
  wake_reason ignored{};
  const std::uintptr_t outcome = detail::await_end(f, end_of(f), ignored);
  report_if_failed(*f, outcome);
  if (outcome != detail::join_left) {
    detail::free_block(detail::current_worker(), f, outcome);
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
