// The life of a fiber on a small stack that is checked. While it runs, its worker's slow path is forced, so each of its
// suspensions goes through `switch_small`.
#include "pirn/fiber/expert/small.hpp"

#include <cstdio>
#include <cstdlib>

#include "fiber/runtime_state.hpp"
#include "fiber/small_stack_misuse.hpp"
#include "pirn/context/detail/stack_end.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

[[noreturn]] PIRN_NOINLINE void tell_overflow(const fiber_control& self, std::size_t below) noexcept {
  const stack& memory = self.memory;
  const auto size = static_cast<std::size_t>(static_cast<char*>(memory.top()) - small_stacks::end_of_band(memory));
  char deeper[64] = "";
  if (below != 0) {
    std::snprintf(deeper, sizeof deeper, " and suspends %zu bytes below it", below);
  }
  std::fprintf(
      stderr,
      "pirn: stack overflow in fiber %llu \"%s\": its stack has %zu bytes and no guard, and it has written "
      "below it%s. The memory there is overwritten. Spawn it with a larger stack_size, call what needs much by "
      "this_fiber::on_worker_stack, or use spawn, whose stacks have a guard\n",
      static_cast<unsigned long long>(self.number()), self.name(), size, deeper);
  std::abort();
}

/// Whether code at `sp`, below the fiber's stack, belongs to it, and not to a coroutine or generator that the fiber has
/// resumed, on a separate stack.
PIRN_COLD bool has_run_off(const fiber_control& self, const char* sp) noexcept {
  const char* const limit = small_stacks::end_of_band(self.memory);
  const auto size = static_cast<std::size_t>(static_cast<char*>(self.memory.top()) - limit);
  return static_cast<std::size_t>(limit - sp) < near_below && !runs_on_another_stack(limit, size);
}

/// Ends the process if the fiber has left its stack, or suspends on the worker's.
PIRN_ALWAYS_INLINE void check(worker* w, const fiber_control& self) noexcept {
  if (w->bounded == worker::bounded_fiber::borrows) [[unlikely]] {
    on_worker_stack(w, [&]() noexcept { tell_suspends_elsewhere(self); });
  }
  const char* const sp = static_cast<const char*>(__builtin_frame_address(0));
  const bool below = sp < small_stacks::end_of_band(self.memory) && has_run_off(self, sp);
  if (below || !small_stacks::band_is_whole(self.memory)) [[unlikely]] {
    on_worker_stack(w, [&]() noexcept {
      tell_overflow(self, below ? static_cast<std::size_t>(small_stacks::end_of_band(self.memory) - sp) : 0);
    });
  }
}

void run_post_switch_elsewhere(worker* w, arch::word pending) noexcept {
  on_worker_stack(w, [pending]() noexcept { run_post_switch(pending); });
}

}  // namespace

stack_result checked_stack_for(std::size_t stack_size) noexcept {
  return small_stacks::allocate_with_band(stack_size != 0 ? stack_size : default_small_stack_size);
}

void begin_small(worker* w, arch::word pending) noexcept {
  w->bounded = worker::bounded_fiber::checked;
  w->update_slow_masks();
  if (pending != 0) {
    run_post_switch_elsewhere(w, pending);
  }
}

void finish_small(std::uintptr_t outcome) noexcept {
  worker* const w = current_worker();
  check(w, *running_fiber(w));
  w->bounded = worker::bounded_fiber::none;
  w->update_slow_masks();
  finish(outcome);
  __builtin_unreachable();
}

worker* switch_small(worker* w, run_node* node, run_node* next, post_switch_action* pending,
                     const wait_options* wait) noexcept {
  auto* const self = static_cast<fiber_control*>(node);
  check(w, *self);
  if (w->forking()) {
    w->stop_forking();
  }
  worker::thread_state own{};
  on_worker_stack(w, [&]() noexcept {
    own = w->save_thread_state(*self);
    if (w->traced != 0) {
      trace_suspended(w, self, wait);
      trace_resumed(w, next);
    }
    if (next->state.pc == nullptr) {
      attach_reserved_stack(w, next);
    }
  });
  w->bounded = worker::bounded_fiber::none;
  w->update_slow_masks();
  auto by = reinterpret_cast<arch::word>(w);
  auto what = reinterpret_cast<arch::word>(pending);
  arch::switch_to(self->state, next->state, by, what);
  w = reinterpret_cast<worker*>(by);
  w->bounded = worker::bounded_fiber::checked;
  w->restore_thread_state(own);
  w->update_slow_masks();
  if (what != 0) {
    run_post_switch_elsewhere(w, what);
  }
  return w;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
