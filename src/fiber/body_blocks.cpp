// Moves the blocks that a body has open along with it when it yields. pirn/context/detail/body_blocks.hpp says why.
#include "pirn/context/detail/body_blocks.hpp"

#include <unwind.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "fiber/runtime_state.hpp"
#include "pirn/context/detail/c_blocks.hpp"
#include "pirn/context/expert/unwind.hpp"
#include "pirn/coro/detail/in_flight.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/coro/detail/running_dispatchers.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/detail/block_origin.hpp"
#include "pirn/fiber/scope.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

[[noreturn]] void refuse(const char* why) { throw std::logic_error(why); }

fiber_control* as_fiber(agent& self) noexcept {
  return self.kind() == agent_kind::fiber ? &static_cast<fiber_control&>(self) : nullptr;
}

/// Not inlined: the addresses of these thread-local words must not be kept across a switch.
PIRN_NOINLINE void count_blocks(std::uint64_t more) noexcept {
  asm volatile("");
  thread_local std::uint64_t open = 0;
  open += more;
  blocks_of_bodies = open != 0 ? ~std::uint64_t{0} : 0;
  if (open == more) {
    watch_blocks_of_bodies();
  }
}

/// One of the stacks of a fiber or thread that are no body's.
struct own_stack {
  body_stack bounds{};
  arch::word root = 0;       ///< where its root frame begins; null for a thread's stack
  arch::word called_at = 0;  ///< the call of fork2 whose first half it is; null for the outermost stack
};

/// The outermost frame that a walk has come to.
struct last_frame {
  arch::word pc = 0;
  arch::word sp = 0;
  static _Unwind_Reason_Code note(_Unwind_Context* frame, void* found) {
    if (_Unwind_GetIP(frame) != 0) {
      *static_cast<last_frame*>(found) = {_Unwind_GetIP(frame), _Unwind_GetCFA(frame)};
    }
    return _URC_NO_REASON;
  }
};

/// Returns whether code on this stack is on that of a body that lies in a frame there: whether a walk ends at the root
/// of another stack. The code is the caller, or, if not null, what was suspended. Takes about two microseconds.
bool runs_in_frame_of(const own_stack& own, const arch::context* suspended) noexcept {
  last_frame last;
  if (suspended != nullptr) {
    arch::backtrace_suspended(suspended, &last_frame::note, &last);
  } else {
    _Unwind_Backtrace(&last_frame::note, &last);
  }
  if (last.pc != reinterpret_cast<arch::word>(arch::detail::entry_plus_8(&arch::root_frame))) {
    return false;
  }
  return own.root == 0 || own.root - last.sp > arch::fork_root_size;
}

arch::word as_word(const void* address) noexcept { return reinterpret_cast<arch::word>(address); }

own_stack first_half(const stack& memory, arch::word called_at) noexcept {
  return {{as_word(memory.limit()), as_word(memory.top())}, as_word(fork_stack::place(memory)), called_at};
}

/// Returns the own stack of the fiber that holds the position; an empty one if none does.
own_stack own_stack_of(const fiber_control& f, arch::word position) noexcept {
  const auto* const at = reinterpret_cast<const void*>(position);
  if (const stack& root = f.root_stack(); root.contains(at)) {
    return {{as_word(root.limit()), as_word(root.top())}, as_word(fiber_control::below_cold(root))};
  }
  fork_deque& open = current_worker()->forks.open;
  const fork_deque::hold held(open);  // a thief takes a stack from the deque and adds it to the fiber's
  if (const deque_slot* const slot = open.slot_at(at); slot != nullptr) {
    return first_half(slot->on->memory, as_word(slot->point));
  }
  const first_half_stack stolen = f.first_half_at(at);
  return stolen.memory != nullptr ? first_half(*stolen.memory, stolen.called_at) : own_stack{};
}

/// As `own_stack_of`, for a thread or a fiber. All memory where the system does not say.
own_stack own_stack_at(const fiber_control* f, arch::word position) noexcept {
  if (f != nullptr) {
    return own_stack_of(*f, position);
  }
  thread_local native_stack known;
  if constexpr (!platform::exploring) {  // there the system does not know the stack of a thread
    if (!known.holds(reinterpret_cast<const char*>(position))) {
      known = native_stack::of_thread();  // the main thread's stack may have been allowed to grow
    }
  }
  return {known.size != 0 ? body_stack{as_word(known.low), as_word(known.low + known.size)}
                          : body_stack{0, ~arch::word{0}}};
}

/// Where code is, seen from the stacks of bodies: a first half of fork2 is where it was called.
struct place {
  arch::word position;
  bool in_body;
};
/// The place of the caller, which is at this position.
place place_of(agent& self, arch::word position) noexcept {
  const fiber_control* const f = as_fiber(self);
  if (f != nullptr && f->bounded()) {  // some functions that it calls run on its worker's stack
    return {position, false};
  }
  for (const arch::context* suspended = nullptr;;) {
    const own_stack own = own_stack_at(f, position);
    if (!own.bounds.holds(position)) {
      return {position, true};
    }
    const bool dispatched = running_dispatchers::any_between(position, own.bounds.top);
    if (dispatched && own.bounds.limit != 0) {
      return {position, true};
    }
    if ((dispatched || frame_bodies::may_hold(position)) && runs_in_frame_of(own, suspended)) {
      return {position, true};
    }
    if (own.called_at == 0) {
      return {position, false};
    }
    position = own.called_at;
    suspended = &reinterpret_cast<const fork_point*>(own.called_at)->state;
  }
}

struct outer_body {
  arch::word position = 0;
};
/// Returns where a body waits for the caller's work, such as a call by `blocking` or a stolen continuation; null if no
/// body does.
arch::word outer_body_here() noexcept {
  const worker* const here = current_worker();
  return here != nullptr ? here->outer_body : platform::per_thread<outer_body>::here().position;
}

/// Refuses a yield of such a body. It, and the bodies through which its fiber resumed it, would be suspended where they
/// do not run, and their resumers would continue there. A body that the caller has resumed itself may yield: the caller
/// is on its stack. Bodies that are resumed by those are unknown.
void check_not_outer(const body_stack& from, arch::word position, arch::word outer) {
  if (!from.holds(outer) && from.holds(position)) {
    return;
  }
  constexpr const char* why =
      "a body yields from inside blocking() or from a half of fork2 that another worker has taken, but was "
      "resumed outside of that: its resumers would continue there. Return from it first, then yield";
  if (from.limit == 0) {
    fail_contract(why);
  }
  refuse((std::string("pirn: ") + why).c_str());
}

void open_in_body(agent& self) noexcept {
  count_blocks(1);
  if (fiber_control* const f = as_fiber(self); f != nullptr) {
    static_cast<void>(f->hold());
  }
}
void close_in_body(agent& self) noexcept {
  count_blocks(~std::uint64_t{0});
  if (fiber_control* const f = as_fiber(self); f != nullptr && f->migratable()) {
    f->let_go();
  }
}

void take_off(block_origin& origin) noexcept {
  if (origin.in_body) {
    close_in_body(*origin.by);
  }
}
void put_back(block_origin& origin, agent& self) noexcept {
  origin.by = &self;
  origin.in_body = true;
  open_in_body(self);
}

/// Returns whether the block leaves with these stacks.
bool leaves_with(const body_stack* from, const block_origin& block, const agent& self) noexcept {
  return block.by == &self && (from != nullptr ? from->holds(block.position) : block.in_body);
}

}  // namespace

PIRN_NOINLINE arch::word position_in_body(agent& self) noexcept {
  const place here = place_of(self, stack_position());
  return here.in_body ? here.position : 0;
}

// Counted as a block is, so that a yield checks it.
outer_body_of_thread::outer_body_of_thread(arch::word position) noexcept {
  platform::per_thread<outer_body>::here().position = position;
  count_blocks(1);
}
outer_body_of_thread::~outer_body_of_thread() {
  platform::per_thread<outer_body>::here().position = 0;
  count_blocks(~std::uint64_t{0});
}
void worker::run_in_outer_body(arch::word position) noexcept {
  if ((position != 0) != (outer_body != 0)) {
    count_blocks(position != 0 ? 1 : ~std::uint64_t{0});
  }
  outer_body = position;
  update_slow_masks();
}

block_origin block_opened(agent& self, arch::word position) noexcept {
  const place here = place_of(self, position);
  if (here.in_body) {
    open_in_body(self);
  }
  return {&self, here.position, here.in_body};
}

void block_closed(const block_origin& origin) noexcept {
  if (origin.in_body) {
    close_in_body(*origin.by);
  }
}

/// Takes off the links of scopes and puts them back.
struct body_scopes {
  static void take(inherited_context& here, agent& self, const body_stack* from, taken_blocks& to) noexcept {
    scope* const newest = here.innermost;
    scope* oldest = nullptr;
    for (scope* each = newest; each != nullptr && leaves_with(from, each->origin_, self); each = each->outer_) {
      oldest = each;
    }
    if (oldest == nullptr) {
      return;
    }
    for (scope* each = newest;; each = each->outer_) {
      each->set_away(true);
      take_off(each->origin_);
      if (each == oldest) {
        break;
      }
    }
    oldest->detach();
    here.innermost = std::exchange(oldest->outer_, nullptr);
    self.end_interruption([&]() noexcept {
      const scope* const left = here.innermost;
      return left != nullptr && &left->opener_ == &self ? left->stops_.why() : wake_reason::notified;
    });
    to.newest_scope = newest;
    to.oldest_scope = oldest;
  }

  static void put(inherited_context& here, agent& self, const taken_blocks& what) noexcept {
    auto* const newest = static_cast<scope*>(what.newest_scope);
    auto* const oldest = static_cast<scope*>(what.oldest_scope);
    if (&oldest->opener_ != &self) {
      fail_contract(
          "a scope is open in the body of a generator or coroutine that is resumed or destroyed by a fiber or thread "
          "other than the scope's opener");
    }
    oldest->outer_ = here.innermost;
    here.innermost = newest;
    for (scope* each = newest;; each = each->outer_) {
      put_back(each->origin_, self);
      each->set_away(false);
      if (each == oldest) {
        break;
      }
    }
    oldest->follow_outer();
    settle(newest, oldest, self);
  }

  /// Returns whether one of the open scopes of `self` has its position on these stacks.
  static bool any_lies_on(const inherited_context& here, const agent& self, const body_stack& stack) noexcept {
    for (const scope* each = here.innermost; each != nullptr && &each->opener_ == &self; each = each->outer_) {
      if (stack.holds(each->origin_.position)) {
        return true;
      }
    }
    return false;
  }

 private:
  /// Settles outer scopes first: the scope around them now decides on their deadline. A stop that they received
  /// meanwhile takes effect here.
  static void settle(scope* each, const scope* oldest, agent& self) noexcept {
    if (each != oldest) {
      settle(each->outer_, oldest, self);
    }
    each->inherit_deadline();
    if (const wake_reason why = each->stops_.why(); why != wake_reason::notified) {
      static_cast<void>(self.interrupt(why));
    }
  }
};

namespace {

bool any_value_lies_on(const inherited_context& here, const agent& self, const body_stack& stack) noexcept {
  for (const context_node* each = here.values; each != nullptr; each = each->older) {
    if (each->origin.by == &self && stack.holds(each->origin.position)) {
      return true;
    }
  }
  return false;
}

void take_values(inherited_context& here, agent& self, const body_stack* from, taken_blocks& to) {
  context_node* const newest = here.values;
  context_node* oldest = nullptr;
  for (context_node* each = newest; each != nullptr && leaves_with(from, each->origin, self); each = each->older) {
    oldest = each;
  }
  if (oldest == nullptr) {
    return;
  }
  publish_inheritors_of(*oldest);
  context_node* last_own = nullptr;  // the oldest node that no child has inherited
  context_node* const below = oldest->older;
  for (context_node* each = newest; each != below; each = each->older) {
    if (each->references.load(platform::memory_order_acquire) != 1) {
      break;
    }
    last_own = each;
  }
  // A node that a child has inherited keeps all older ones. So the body gets another node with the same value.
  context_node* first_copy = nullptr;
  context_node* last_copy = nullptr;
  for (context_node* each = last_own != nullptr ? last_own->older : newest; each != below; each = each->older) {
    context_node* const copy = alias_of(each);
    if (copy == nullptr) {
      if (from == nullptr) {
        fail_contract("no memory for the context values of a continuation that is switched away from");
      }
      release(first_copy);
      throw std::bad_alloc();
    }
    (last_copy != nullptr ? last_copy->older : first_copy) = copy;
    last_copy = copy;
  }
  for (context_node* each = newest; each != below; each = each->older) {
    take_off(each->origin);
  }
  if (first_copy != nullptr) {
    if (below != nullptr) {
      below->references.fetch_add(1, platform::memory_order_relaxed);
    }
    context_node* const inherited = last_own != nullptr ? std::exchange(last_own->older, first_copy) : newest;
    release(inherited);
    oldest = last_copy;
  }
  oldest->older = nullptr;
  here.values = below;
  to.newest_value = last_own != nullptr ? newest : first_copy;
  to.oldest_value = oldest;
}

void put_values(inherited_context& here, agent& self, const taken_blocks& what) noexcept {
  auto* const newest = static_cast<context_node*>(what.newest_value);
  auto* const oldest = static_cast<context_node*>(what.oldest_value);
  for (context_node* each = newest; each != nullptr; each = each->older) {
    put_back(each->origin, self);
  }
  oldest->older = here.values;
  here.values = newest;
}

bool has_any(const inherited_context* here) noexcept {
  return here != nullptr && (here->innermost != nullptr || here->values != nullptr);
}

/// Returns the limit of the stack that holds the position. It is unknown for a stack that is neither a fiber's nor a
/// thread's own; then returns the limit of memory that is likely to belong to it.
arch::word limit_below(agent& self, arch::word position) noexcept {
  constexpr arch::word likely = 16384;
  const body_stack own = own_stack_at(as_fiber(self), position).bounds;
  return own.limit != 0 && own.holds(position) ? own.limit : position - likely;
}

/// Returns where a body yields: in a first half of fork2, where that was called.
arch::word position_of_yield(agent& self, const body_stack& from, arch::word position) noexcept {
  while (from.limit == 0 || !from.holds(position)) {
    const arch::word called_at = own_stack_at(as_fiber(self), position).called_at;
    if (called_at == 0) {
      break;
    }
    position = called_at;
  }
  return position;
}

void check(const body_stack& from, arch::word position) {
  if (const arch::word outer = outer_body_here(); outer != 0) {
    check_not_outer(from, position_of_yield(current_agent(), from, position), outer);
  }
}

taken_blocks take(const body_stack* from, arch::word position) {
  taken_blocks taken;
  const arch::word outer = outer_body_here();
  if (outer == 0 && !has_any(inherited_context_here())) {
    return taken;
  }
  agent& self = current_agent();
  if (from != nullptr) {
    position = position_of_yield(self, *from, position);
    if (outer != 0) {
      check_not_outer(*from, position, outer);
    }
  }
  if (!has_any(inherited_context_here())) {
    return taken;
  }
  body_stack whole{};
  if (from != nullptr && from->limit == 0) {
    whole = *from;
    whole.limit = limit_below(self, position);
    from = &whole;
  }
  inherited_context& here = inherited_context_of(self);
  if (from != nullptr && !from->holds(position) &&
      (body_scopes::any_lies_on(here, self, *from) || any_value_lies_on(here, self, *from))) {
    refuse(
        "pirn: a yield on the stack of another body, which it would suspend too, while a scope or the binding of a "
        "context value is open: yield after the block is closed");
  }
  if (from != nullptr && from->moves && body_scopes::any_lies_on(here, self, *from)) {
    refuse(
        "pirn: a copied_coroutine or a swapped task suspends with a scope open, which could not be found while its "
        "frames are copied elsewhere. Close the scope first");
  }
  take_values(here, self, from, taken);
  body_scopes::take(here, self, from, taken);
  return taken;
}

void put(const taken_blocks& what) noexcept {
  if (!what.any()) {
    return;
  }
  agent& self = current_agent();
  inherited_context& here = inherited_context_of(self);
  if (what.newest_scope != nullptr) {
    body_scopes::put(here, self, what);
  }
  if (what.newest_value != nullptr) {
    put_values(here, self, what);
  }
}

}  // namespace

const block_keeper keeper_of_blocks{&take, &put, &check};

bool take_blocks_of_c(void* limit, void* top, blocks_of_c& to) noexcept {
  const body_stack mine{reinterpret_cast<arch::word>(limit), reinterpret_cast<arch::word>(top)};
  try {
    const taken_blocks taken = take(&mine, mine.limit);
    to = {{taken.newest_scope, taken.oldest_scope, taken.newest_value, taken.oldest_value}};
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void put_blocks_of_c(const blocks_of_c& what) noexcept {
  put({what.links[0], what.links[1], what.links[2], what.links[3]});
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
