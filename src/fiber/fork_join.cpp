// The slow half of fork2: what happens when a continuation is taken. docs/scheduler.md has the states.
#include "pirn/fiber/fork_join.hpp"

#include <cstdlib>

#include "fiber/runtime_state.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/detail/suspend.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

/// The values of `fork_point::progress`: which of the two halves has ended first.
enum fork_progress : std::uintptr_t {
  both_under_way,
  continuation_ended,  ///< its stack is switched out: the caller may continue there
  caller_waits,        ///< for that end
};

platform::atomic_ref<std::uintptr_t> progress_of(fork_point& point) noexcept {
  return platform::atomic_ref<std::uintptr_t>(point.progress);
}

[[noreturn]] void refuse(const char* why) {
  throw std::system_error(std::make_error_code(std::errc::operation_not_permitted), why);
}

/// Records, with other thieves kept out, on which stacks the two run from now on. The forks further out have been
/// stolen before.
void part_stacks(fiber_control& caller, fork_point& point) noexcept {
  point.root = &caller.root_stack();
  point.around = caller.first_half_at(&point);
  point.older = std::exchange(caller.cold().first_halves, &point);
}

/// Returns the link to the call in the list of its caller; a null one at the end if `part_stacks` has not put it there.
fork_point** link_of(const fork_point& point) noexcept {
  fork_point** each = &point.caller->cold().first_halves;
  while (*each != nullptr && *each != &point) {
    each = &(*each)->older;
  }
  return each;
}

[[noreturn]] void refuse_another_fiber() noexcept {
  fail_contract(
      "a generator that yielded in the first half of fork2 was resumed by a fiber other than the caller of fork2");
}

/// Makes the fiber that runs a continuation stolen for `by`, in a block of `by`. Of several continuations of one
/// caller, the outermost comes first.
stolen_continuation* make_stolen_continuation(worker* by, void* block, fork_point& point) noexcept {
  static_assert(sizeof(stolen_continuation) <= block_chunk::block_bytes);
  auto* const stolen = ::new (block) stolen_continuation(by->make_id());
  stolen->state = point.state;
  stolen->memory = point.on->memory;
  stolen->inherited = point.inherited;
  if (stolen->inherited.values != nullptr) {  // a consumer may unbind them while it is away from the first half
    stolen->inherited.values->references.fetch_add(1, platform::memory_order_relaxed);
  }
  stolen->point = &point;
  stolen->cold().continues = &point;
  part_stacks(*point.caller, point);
  stolen->sanitizer = point.continuation;
  point.continuation = {};
  point.stolen = stolen;
  progress_of(point).store(both_under_way, platform::memory_order_relaxed);
  stolen->assign_worker(by, mobility::migratable, by->traced);
  if (by->traced != 0) {
    trace_spawned(stolen);
  }
  return stolen;
}

struct fork_action : post_switch_action {
  fork_point* point;
};

/// Publishes how far this side has come, and wakes the caller if the other side was there before. Else the point may be
/// gone at once: it belongs to the caller.
void tell(fork_point& point, fork_progress mine, fork_progress other) noexcept {
  if (progress_of(point).exchange(mine, platform::memory_order_acq_rel) == other) {
    fiber_control* const caller = point.caller;
    caller->claim(point.epoch, wake_reason::notified);
    schedule(*caller, placement::front);
  }
}

/// Runs once the stolen continuation is switched out for the last time. As soon as its end is published, the caller may
/// free all of it.
void tell_end(post_switch_action* c) noexcept {
  fork_point& point = *static_cast<fork_action*>(c)->point;
  point.stolen->release_block();
  tell(point, continuation_ended, caller_waits);
}

void tell_wait(post_switch_action* c) noexcept {
  tell(*static_cast<fork_action*>(c)->point, caller_waits, continuation_ended);
}

/// Suspends the caller of fork2 until the stolen continuation has ended. Returns the worker on which it continues.
worker* await_second_half(worker* here, fork_point& point) noexcept {
  if (progress_of(point).load(platform::memory_order_acquire) == continuation_ended) {
    return here;
  }
  const wait_options what{.stoppable = false, .what = "second half of fork2", .object = &point};
  fork_action publish{{&tell_wait}, &point};
  here = suspend_until_claimed(here, *point.caller, what, point.epoch, publish);
  progress_of(point).store(continuation_ended, platform::memory_order_relaxed);
  return here;
}

void free_stolen_continuation(worker* here, stolen_continuation* stolen) noexcept {
  stolen->detach();
  release(stolen->point->inherited.values);
  if (here->traced != 0) {
    trace_ended(here, stolen);
  }
  stolen->sanitizer.destroy();
  stolen->destroy_cold();
  give_stack_back(here, stolen->memory);
  give_block_back(here, stolen);
}

}  // namespace

const stack& fiber_control::root_stack() const noexcept {
  const fork_point* const continued = has_cold_part() ? cold_place()->continues : nullptr;
  return continued != nullptr ? *continued->root : memory;
}

first_half_stack fiber_control::first_half_at(const void* address) const noexcept {
  if (!has_cold_part()) {
    return {};
  }
  for (const fork_point* each = cold_place()->first_halves; each != nullptr; each = each->older) {
    if (each->on->memory.contains(address)) {
      // Not further out than where it may be in a body that lies in a frame.
      const auto call = reinterpret_cast<arch::word>(each);
      const bool outermost = each->around.memory == nullptr || frame_bodies::may_hold(call);
      return {&each->on->memory, outermost ? call : each->around.called_at};
    }
  }
  const fork_point* const continued = cold_place()->continues;
  return continued != nullptr && continued->around.memory != nullptr && continued->around.memory->contains(address)
             ? continued->around
             : first_half_stack{};
}

const stack& fiber_control::newest_stack() const noexcept {
  if (!has_cold_part()) {
    return memory;
  }
  if (const fork_point* const newest = cold_place()->first_halves; newest != nullptr) {
    return newest->on->memory;
  }
  const fork_point* const continued = cold_place()->continues;
  return continued != nullptr && continued->around.memory != nullptr ? *continued->around.memory : root_stack();
}

deque_slot* begin_fork() {
  worker* const here = current_worker();
  if (here == nullptr) {
    refuse("pirn: fork2() called outside a fiber");
  }
  fiber_control* const self = running_fiber(here);
  if (!self->migratable()) {
    refuse("pirn: fork2() called by a fiber that is not migratable");
  }
  here->start_forking(*self);
  fork_deque& open = here->forks.open;
  if (open.next()->on == nullptr) {
    const stack_result found = stack_for_fiber(here, here->owner, 0);
    if (!found) {
      throw_no_fiber(make_error_code(found.error));
    }
    open.provide(fork_stack::make(found.value));
  }
  return open.next();
}

bool begin_second_half(fork_point& point, arch::word by, arch::word pending, exceptions_in_flight kept) noexcept {
  const bool taken = pending != first_half_returned && pending != first_half_failed;
  if (taken) {
    point.stolen->sanitizer.arrive();
    finish_switch(by, pending);
    if (const arch::word body = position_in_body(*point.stolen); body != 0) {
      current_worker()->run_in_outer_body(body);
    }
  } else {
    point.continuation.arrive();
    point.first.destroy();
    point.continuation.destroy();
  }
  if (kept.any()) {
    *current_worker()->thread_exceptions = kept;
  }
  return taken;
}

arch::word end_stolen_continuation(fork_point& point) noexcept {
  stolen_continuation* const stolen = point.stolen;
  stolen->end_cold();
  if (worker* const here = current_worker(); here->outer_body != 0) {
    here->run_in_outer_body(0);
  }
  fork_action publish{{&tell_end}, &point};
  const wait_options what{.stoppable = false, .what = "end of stolen continuation", .object = &point};
  // From here on this is the caller again.
  worker* const here = switch_out(current_worker(), what, &publish);
  point.first.destroy();
  free_stolen_continuation(here, stolen);
  return point.outcome;
}

void end_first_half_apart(fork_point& point, arch::word outcome) noexcept {
  worker* here = current_worker();
  if (running_fiber(here) != point.caller) {
    refuse_another_fiber();
  }
  point.outcome = outcome;
  // The continuation may still be open, further out than others: then it is given away with those, or stolen.
  bool open = false;
  here->forks.open.if_open(&point, [&]() noexcept {
    open = true;
    progress_of(point).store(both_under_way, platform::memory_order_relaxed);
  });
  if (!open) {  // so it was stolen, unless the caller has ended and this fiber has its block
    const fork_deque::hold held(here->forks.open);
    if (*link_of(point) == nullptr) {
      refuse_another_fiber();
    }
  }
  here = await_second_half(here, point);
  here->forks.open.without_thieves([&]() noexcept { *link_of(point) = point.older; });
  point.first.leave_for_good(point.stolen->sanitizer);
  arch::switch_last(point.stolen->state, reinterpret_cast<arch::word>(here), 0);
}

void publish_inheritors_of(const context_node& value) noexcept {
  worker* const here = current_worker();
  const fork_point* const newest =
      here != nullptr && here->forking() ? here->forks.open.innermost_or_stolen() : nullptr;
  if (newest == nullptr) {
    return;
  }
  const context_node* each = newest->inherited.values;
  while (each != nullptr && each != &value) {
    each = each->older;
  }
  if (each != nullptr) {
    here->publish_continuations();
  }
}

void await_second_halves_in(const scope& closing) noexcept {
  worker* here = current_worker();
  if (here == nullptr) {
    return;
  }
  fiber_control* const self = running_fiber(here);
  if (here->forking()) {
    const fork_point* const newest = here->forks.open.innermost_or_stolen();
    if (newest != nullptr && newest->inherited.innermost == &closing) {
      here->publish_continuations();
    }
  }
  if (!self->has_cold_part()) {
    return;
  }
  fork_point* each = nullptr;
  here->forks.open.without_thieves([&]() noexcept { each = self->cold().first_halves; });
  for (; each != nullptr; each = each->older) {
    if (each->inherited.innermost == &closing) {
      here = await_second_half(here, *each);
      each->stolen->detach();
    }
  }
}

namespace {
struct open_action : post_switch_action {
  worker* here;
  deque_slot* slot;
  fork_point* point;
};
}  // namespace

bool may_begin_eager_child(const worker* here) noexcept {
  const fiber_control* const self = running_fiber(here);
  return self->migratable() && !self->migration_disabled();
}

void begin_eager_child(worker* here, eager_child_control* child) noexcept {
  fiber_control* const self = running_fiber(here);
  here->count(here->spawned);
  here->start_forking(*self);
  fork_deque& open = here->forks.open;
  if (fork_stack* const unused = open.take_unused_stack()) {
    here->stacks.deallocate(stack(unused->memory));
  }
  fork_point point(self, {});
  point.on = nullptr;
  child->slot = open.next();
  child->cold();
  here->forks.inherited = &child->inherited;
  const worker::thread_state own = here->save_thread_state(*self);
  open_action publish{{[](post_switch_action* c) noexcept {
                        const open_action request = *static_cast<open_action*>(c);
                        request.here->push_continuation(request.slot, request.point);
                      }},
                      here,
                      child->slot,
                      &point};
  here->queue.become(child);
  if (here->traced != 0) {
    trace_suspended(here, self, nullptr);
    trace_resumed(here, child);
  }
  here = switch_started(here, self, child, &publish);
  here->restore_thread_state(own);
}

void finish_eager_child() noexcept {
  worker* const here = current_worker();
  auto* const self = static_cast<eager_child_control*>(running_fiber(here));
  here->count(here->ended);
  if (here->traced != 0) {
    trace_ended(here, self);
  }
  self->release_block();
  run_node* next = nullptr;
  if (here->forks.open.pop(self->slot)) {
    fiber_control* const parent = self->slot->point->caller;
    here->forks.inherited = &inherited_context_of(*parent);
    here->queue.become(parent);
    if (here->traced != 0) {
      trace_resumed(here, parent);
    }
    next = parent;
  } else {
    if (here->forking()) {
      here->stop_forking();
    }
    next = here->consume_budget() ? here->queue.leave_to_scheduler() : here->queue.leave();
    if (next->state.pc == nullptr) {
      attach_reserved_stack(here, next);
    }
  }
  self->sanitizer.leave_for_good(next->sanitizer);
  arch::switch_last(next->state, reinterpret_cast<arch::word>(here), pending_end(self, join_ended_cold));
}

void stolen_continuation::follow(fiber_control& caller) noexcept {
  scope* const innermost = inherited.innermost;
  stop_list& list = innermost != nullptr && &innermost->opener_ == &caller ? innermost->stops_ : caller.cold().scopes;
  attach(list,
         [](stop_link& link) noexcept { return begin_to_stop(static_cast<stolen_continuation*>(&link), link.why()); });
  // A stop that came before the caller had a list shows only in the caller's flags.
  if (const wake_reason why = caller.own_stop_reason(); why != wake_reason::notified) {
    stop_fiber(this, why);
  }
}

bool fork_deque::pop_contended(slot* at) noexcept {
  const platform::spin_guard guard(lock_);
  if (head_.load(platform::memory_order_relaxed) <= at) {
    return true;
  }
  reset(at + 1);
  return false;
}

void fork_deque::reset(slot* end) noexcept {
  const std::ptrdiff_t gone = end - first();
  for (slot* each = first(); each != deepest_; ++each) {
    each->on = deepest_ - each > gone ? each[gone].on : nullptr;
  }
  tail_.store(first(), platform::memory_order_release);
  head_.store(first(), platform::memory_order_release);
}

void worker::start_forking(fiber_control& self) noexcept {
  if (forking()) {
    if (forks.open.full()) {
      publish_continuations();
    }
    return;
  }
  check_not_forked(owner);
  idle->expect_work();
  self.cold();
  forks.inherited = &inherited_context_of(self);
  forks.open.open();
  update_slow_masks();
}

void worker::stop_forking() noexcept {
  publish_continuations();
  forks.open.close();
  forks.inherited = nullptr;
  update_slow_masks();
}

void worker::publish_continuations() noexcept {
  run_node* innermost = nullptr;
  forks.open.drain([&](fork_point* point) noexcept {
    if (point->on == nullptr) {
      point->caller->next = std::exchange(innermost, point->caller);
      return;
    }
    void* const block = blocks.allocate();
    if (block == nullptr) {
      fail_contract("no memory for the fiber that continues a fork2");
    }
    stolen_continuation* const stolen = make_stolen_continuation(this, block, *point);
    stolen->follow(*point->caller);
    stolen->next = std::exchange(innermost, stolen);
  });
  // The continuation that would have come next goes first.
  while (innermost != nullptr) {
    auto* const each = static_cast<fiber_control*>(innermost);
    innermost = innermost->next;
    push_stealable(each);
  }
}

bool worker::steal_continuation(worker& victim) noexcept {
  void* const block = blocks.allocate();
  if (block == nullptr) {
    return false;
  }
  const bool last = stealing_.begin_steal();
  stolen_continuation* stolen = nullptr;
  fiber_control* taken = nullptr;
  const auto take = [&](fork_point* point) noexcept {
    if (point->on != nullptr) {
      taken = stolen = make_stolen_continuation(this, block, *point);
    } else {
      taken = point->caller;
      taken->move_to(this);
    }
  };
  if (!victim.forks.open.steal(take)) {
    blocks.deallocate(block);
    stealing_.steal_failed();
    return false;
  }
  count(counters.steal_operations);
  count(counters.stolen);
  if (stolen != nullptr) {
    stolen->follow(*stolen->point->caller);
  } else {
    blocks.deallocate(block);
  }
  queue.push_back(taken);
  stealing_.end_steal(last);
  return true;
}

void worker::give_fork_stacks_back() noexcept {
  forks.open.give_stacks([this](fork_stack* each) noexcept { stacks.deallocate(stack(each->memory)); });
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
