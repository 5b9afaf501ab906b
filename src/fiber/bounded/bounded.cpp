// The life of a fiber on a small stack. The use of that stack is known to the last byte: each function that the fiber
// calls there is either compiled with the plugin, so that its use is added up, or called on the worker's stack.
//
// Its home word has a bit that no pinned fiber has, so no caller takes a fast path for it. While it runs, its worker's
// slow path is forced, so each of its suspensions goes through `switch_bounded`.
#include "pirn/fiber/expert/bounded.hpp"

#include <cstdio>
#include <cstdlib>

#include "fiber/runtime_state.hpp"
#include "fiber/small_stack_misuse.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

[[noreturn]] PIRN_NOINLINE void tell_overrun(const fiber_control& self) noexcept {
  std::fprintf(
      stderr,
      "pirn: fiber %llu \"%s\" has left its stack at %p, of %zu bytes: it used more than the bound that it was "
      "spawned with; an assumption about a function that it calls is wrong, or it writes past an array\n",
      static_cast<unsigned long long>(self.number()), self.name(), self.memory.limit(), self.memory.size());
  std::abort();
}

/// Ends the process if the fiber has left its stack, and so damaged another one, or suspends on the worker's stack.
PIRN_ALWAYS_INLINE void check(worker* w, const fiber_control& self) noexcept {
  if (!small_stacks::whole(self.memory)) [[unlikely]] {
    on_worker_stack(w, [&]() noexcept { tell_overrun(self); });
  }
  if (w->bounded == worker::bounded_fiber::borrows) [[unlikely]] {
    on_worker_stack(w, [&]() noexcept { tell_suspends_elsewhere(self); });
  }
}

/// Continues with `run()` on the worker's stack, and never returns.
[[noreturn]] PIRN_NAKED void leave_for(void* /*top*/, void (* /*run*/)()) {
  asm volatile(
      "# pirn-stack: 0\n\t" PIRN_CFI(".cfi_undefined rip") "movq %rdi, %rsp\n\txorl %ebp, %ebp\n\tcallq *%rsi\n\tud2");
}

void end_on_worker_stack() noexcept {
  worker* w = current_worker();
  fiber_control* const self = running_fiber(w);
  w->bounded = worker::bounded_fiber::borrows;
  std::uintptr_t outcome = join_ended;
  if (self->has_cold_part()) {
    outcome = end_with_cold_part(w, self, outcome);
  }
  w->bounded = worker::bounded_fiber::none;
  w->update_slow_masks();
  small_stacks::give_back(self->memory);
  self->memory.forget();
  w->count(w->ended);
  self->release_block();
  run_node* const next = w->consume_budget() ? w->queue.leave_to_scheduler() : w->queue.leave();
  if (next->state.pc == nullptr) {
    attach_reserved_stack(w, next);
  }
  arch::switch_last(next->state, reinterpret_cast<arch::word>(w), pending_end(self, outcome));
}

}  // namespace

stack_result small_stack_for(std::size_t bytes) noexcept {
  // The return address counts as the entry's. The root frame, which contains it, lies above.
  return small_stacks::allocate(bytes + arch::root_size - sizeof(void*));
}

namespace {
void run_post_switch_on_worker_stack(worker* w, arch::word pending) noexcept {
  w->bounded = worker::bounded_fiber::borrows;
  call_on(
      free_worker_stack(w), [](void* what) noexcept { run_post_switch(reinterpret_cast<arch::word>(what)); },
      reinterpret_cast<void*>(pending));
  w->bounded = worker::bounded_fiber::runs;
}
}  // namespace

void begin_bounded(worker* w, arch::word pending) noexcept {
  w->bounded = worker::bounded_fiber::runs;
  w->update_slow_masks();
  if (pending != 0) {
    run_post_switch_on_worker_stack(w, pending);
  }
}

void finish_bounded() noexcept {
  worker* const w = current_worker();
  check(w, *running_fiber(w));
  leave_for(free_worker_stack(w), &end_on_worker_stack);
}

namespace {

/// State that is set aside while a bounded fiber is suspended, and the arguments for that.
struct left_aside {
  exceptions_in_flight exceptions;
  unsigned mutexes;
  worker* w;
  fiber_control* self;
  const wait_options* wait;

  /// Reports mutexes, traces, and gives the next fiber a stack, as far as there is a reason.
  static void leave(void* argument) noexcept {
    auto& own = *static_cast<left_aside*>(argument);
    run_node* const next = own.w->queue.running();
    own.mutexes = own.w->leave_mutexes(*own.self);
    if (own.w->traced != 0) {
      trace_suspended(own.w, own.self, own.wait);
      trace_resumed(own.w, next);
    }
    if (next->state.pc == nullptr) {
      attach_reserved_stack(own.w, next);
    }
  }
};

}  // namespace

PIRN_DEFINED_ONCE worker* switch_bounded(worker* w, run_node* node, run_node* next, post_switch_action* pending,
                                         const wait_options* wait) noexcept {
  auto* const self = static_cast<fiber_control*>(node);
  check(w, *self);
  left_aside own{std::exchange(*w->thread_exceptions, {}), 0, w, self, wait};
  if ((w->mutexes_held | w->traced) != 0 || next->state.pc == nullptr) [[unlikely]] {
    w->bounded = worker::bounded_fiber::borrows;
    call_on(free_worker_stack(w), &left_aside::leave, &own);
  }
  w->bounded = worker::bounded_fiber::none;
  w->update_slow_masks();
  auto by = reinterpret_cast<arch::word>(w);
  auto what = reinterpret_cast<arch::word>(pending);
  arch::switch_to(self->state, next->state, by, what);
  w = reinterpret_cast<worker*>(by);
  w->bounded = worker::bounded_fiber::runs;
  *w->thread_exceptions = own.exceptions;
  w->mutexes_held = own.mutexes;
  w->update_slow_masks();
  if (what != 0) {
    run_post_switch_on_worker_stack(w, what);
  }
  return w;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
