// The control block of a fiber. It lies apart from the stack, which a fiber has only from start to end: a thousand
// fibers that are spawned, run once and joined pass through one stack, which stays in the processor's cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/per_fiber.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/fiber/detail/agent.hpp"
#include "pirn/fiber/stop.hpp"
#include "pirn/stack/expert/small_stacks.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
struct wait_options;
class scope;

/// Which of the ready fibers of a worker run first.
enum class fiber_priority : std::uint8_t { normal, high };
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

class worker;

/// A context that a worker resumes: a fiber, or the worker's own scheduler. A link of the run queue's ring while it
/// runs or is ready; `next` also links it in the stack of woken fibers and in an inbox.
struct run_node {
  /// Leaves uninitialised what a fiber does not use before its first switch out: a spawn costs as much as it stores.
  run_node() noexcept { state.pc = nullptr; }
  union {
    arch::context state;
  };
  run_node* next;
  union {
    run_node* previous;         ///< in the ring
    const wait_options* waits;  ///< the reason, while it is suspended and `agent::waiting`; on its own stack
  };
  [[no_unique_address]] sanitizer_state sanitizer;
};

/// The progress of a fiber towards its end, in one word: one of these values, or the address of a `joiner`. Bit 0 of
/// the address is set if the joiner is a fiber of the same worker that waits for nothing else. Only then may the
/// fiber's end look at the joiner before it has moved the word to join_waking, since another joiner might time out and
/// be gone.
///
/// A fiber whose handle only its own worker has needed so far ends without a read-modify-write: the worker keeps it,
/// and publishes the completion to others at its second tick from then. Until then a fiber that does not yield might
/// run for long. So a joiner elsewhere moves the word to join_remote first, and behind a heavy fence checks whether the
/// fiber was kept by then.
enum join_state : std::uintptr_t {
  join_possible = 0,             ///< runs; a handle exists
  join_detached = 1,             ///< runs; no handle: its end frees the stack
  join_waking = 2,               ///< has ended; its worker touches the block once more, to say so
  join_ended = 3,                ///< has ended and is switched out; the handle frees the stack
  join_ended_cold = 4,           ///< as join_ended, and there is a cold part to destroy
  join_failed = 5,               ///< as join_ended_cold, and its exception is kept there
  join_stolen_continuation = 6,  ///< is a `stolen_continuation`; never changes
  join_remote = 8,  ///< as join_possible, but its end must be published at once; even, so without `same_worker_bit`
  join_left = 10,   ///< never in the word: has ended, and its worker frees the block
};
PIRN_ALWAYS_INLINE bool is_joinable(std::uintptr_t join_word) noexcept {
  return join_word == join_possible || join_word == join_remote;
}
PIRN_ALWAYS_INLINE bool has_ended(std::uintptr_t join_word) noexcept {
  return join_word >= join_ended && join_word <= join_failed;
}

struct fiber_control;

/// How a fiber may move from worker to worker while it is ready.
enum class mobility : std::uintptr_t {
  pinned = 0,
  stealable_until_started = 1,
  migratable = 3,  ///< always, except while that is disabled
};

/// Ties a fiber to the stop token that it was spawned with.
struct fiber_stop_link : stop_link {
  fiber_control* target = nullptr;
  stop_token token;
};

struct context_node;
class local_table;

/// The scope and the context values of a fiber or thread, which its children inherit.
struct inherited_context {
  scope* innermost = nullptr;      ///< of the scopes that it is a child of or has opened
  context_node* values = nullptr;  ///< the newest bound value
};

struct fork_point;
/// The stack of a first half of `fork2`, and where the call was; for a call within another first half, where that was
/// called.
struct first_half_stack {
  const stack* memory;
  arch::word called_at;
};

/// The data that most fibers never need, kept off the cache lines that every spawn writes; made when first needed.
struct alignas(16) fiber_cold_part {
  static constexpr std::size_t name_capacity = 32;
  char name[name_capacity] = {};  ///< zero-terminated; longer names are cut
  std::exception_ptr exception;
  fiber_stop_link stop;
  stop_list scopes;  ///< the outermost of its open scopes, and stolen continuations
  local_table* locals = nullptr;
  inherited_context inherited;            ///< of a fiber that is no child
  platform::time_point ready_since;       ///< of a traced fiber; written when it is made ready
  unsigned holds = 0;                     ///< reasons to disable migration for longer than a wait
  const fork_point* continues = nullptr;  ///< of a stolen continuation
  /// Its calls of `fork2` whose continuation was stolen and whose first half has not ended, the latest theft first. A
  /// generator may yield in a first half, so they end in any order. Changed with thieves kept out.
  fork_point* first_halves = nullptr;
  void* c_coroutine = nullptr;  ///< see per_fiber.hpp
  void* usched[2] = {};         ///< see per_fiber.hpp
  unwinds_under_way unwinds;    ///< see per_fiber.hpp
};

struct fiber_control : run_node, agent {
  explicit fiber_control(std::uint64_t number, agent_kind what = agent_kind::fiber) noexcept : agent(what, number) {
    memory.forget();
  }
  // -- one cache line with the bases: the data that a wake-up and a switch touch
  /// Returns the worker that it belongs to; null for a block without a fiber, and for a fiber whose end has been
  /// published. Only that worker resumes it. The worker changes in two ways only: by that worker's own thread, or by a
  /// thief inside that worker's stealable queue.
  [[nodiscard]] PIRN_ALWAYS_INLINE worker* home() const noexcept {
    return reinterpret_cast<worker*>(home_word() & ~home_bits);
  }
  /// Whether it will end on `w`, so that the fibers of that worker may look at it without atomic operations.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool is_pinned_to(const worker* w) const noexcept {
    return home_word() == reinterpret_cast<std::uintptr_t>(w);
  }

 private:
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t home_word() const noexcept {
    return platform::atomic_ref<std::uintptr_t>(const_cast<std::uintptr_t&>(home_))
        .load(platform::memory_order_acquire);
  }
  /// A `worker*`, the fiber's mobility and its priority. Outlives the object in its block: the constructor leaves it
  /// null, since others may look.
  std::uintptr_t home_;

 public:
  // -- the next line, which leaves room for a callable of three words
  union {
    stack memory;  ///< null before it has one, and when it has given it back
  };
  platform::atomic<std::uintptr_t> join_word{join_possible};

  /// Stores the entry function of a fiber without a stack where the sp will be; it has no pc.
  PIRN_ALWAYS_INLINE void set_entry(arch::switch_entry entry) noexcept {
    state.sp = reinterpret_cast<void*>(entry);
    state.pc = nullptr;
  }
  /// Gives it a stack, on which it begins when next resumed. The pc comes last: a signal handler that sees one may
  /// walk.
  PIRN_ALWAYS_INLINE void attach_stack(const stack& where) noexcept {
    const auto entry = reinterpret_cast<arch::switch_entry>(state.sp);
    void* const top = below_cold(where);  // not from `memory`: the processor would wait for that store
    memory = where;
    const arch::context begin = arch::prepare(top, entry);
    state.sp = begin.sp;
    state.fp = begin.fp;
    platform::signal_fence();  // pairs with the look of a signal handler at the pc
    platform::atomic_ref<void*>(state.pc).store(begin.pc, platform::memory_order_relaxed);
  }
  /// As `attach_stack`, for a fiber with a bounded stack, which has nothing else on it.
  void attach_small_stack(const stack& where) noexcept {
    const auto entry = reinterpret_cast<arch::switch_entry>(state.sp);
    memory = where;
    state = arch::prepare(where.top(), entry);
    if (where.slot() != 0) {  // it comes with a cold part
      set_has_cold_part();
    }
  }
  /// Returns its entry function while it has no stack, else null.
  [[nodiscard]] PIRN_ALWAYS_INLINE arch::switch_entry entry_without_stack() const noexcept {
    return state.pc == nullptr ? reinterpret_cast<arch::switch_entry>(state.sp) : nullptr;
  }
  /// Returns where its first frame begins, once it has a stack.
  [[nodiscard]] PIRN_ALWAYS_INLINE void* first_frame() const noexcept { return below_cold(memory); }
  [[nodiscard]] PIRN_ALWAYS_INLINE static void* below_cold(const stack& where) noexcept {
    return static_cast<char*>(where.top()) - sizeof(fiber_cold_part);
  }

  /// Records the end for its own worker, before it is published in the join word. Kept in the state, which has no other
  /// use then; a live fiber has a pc.
  PIRN_ALWAYS_INLINE void set_ended_here(std::uintptr_t outcome, fiber_control** deferred_slot) noexcept {
    state.sp = deferred_slot;
    platform::atomic_ref<void*>(state.pc).store(reinterpret_cast<void*>(outcome), platform::memory_order_release);
  }
  /// Whether `set_ended_here` recorded its end. Any thread.
  [[nodiscard]] bool deferred() const noexcept {
    void* const pc = platform::atomic_ref<void*>(const_cast<void*&>(state.pc)).load(platform::memory_order_acquire);
    return pc != nullptr && reinterpret_cast<std::uintptr_t>(pc) <= join_failed;
  }
  /// Returns the join_state to end with, or join_possible for a live fiber. Its own worker only.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t ended_here() const noexcept {
    const auto pc = reinterpret_cast<std::uintptr_t>(state.pc);
    return pc <= join_failed ? pc : join_possible;
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool ended_well_here() const noexcept {
    return reinterpret_cast<std::uintptr_t>(state.pc) == join_ended;
  }
  /// Returns where its worker keeps it until the end is published. Only once it has `ended_here`.
  [[nodiscard]] PIRN_ALWAYS_INLINE fiber_control** deferred_slot() const noexcept {
    return static_cast<fiber_control**>(state.sp);
  }

  /// Whether a fiber that has a home has not ended. Its own worker's thread only, where it may interrupt anything.
  [[nodiscard]] bool lives() const noexcept { return ended_here() == join_possible; }
  /// Assigns its worker. From here on code that lists the fibers of `on` finds it.
  PIRN_ALWAYS_INLINE void assign_worker(worker* on, mobility moves = mobility::pinned,
                                        std::uintptr_t traced = 0) noexcept {
    set_home(reinterpret_cast<std::uintptr_t>(on) | static_cast<std::uintptr_t>(moves) | traced);
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool has_high_priority() const noexcept { return (home_word() & high_bit) != 0; }
  /// Called by the spawner before the fiber is ready, or by the fiber.
  void set_high_priority(bool high) noexcept { set_home((home_word() & ~high_bit) | (high ? high_bit : 0)); }
  /// As `assign_worker`, for a fiber that moves and may move again.
  void move_to(worker* on) noexcept {
    set_home(reinterpret_cast<std::uintptr_t>(on) | (home_word() & home_bits));
    std::uintptr_t before = join_possible;  // its handle does not move
    join_word.compare_exchange_strong(before, join_remote, platform::memory_order_relaxed);
  }
  /// Pins it unless it is migratable. Called when its worker is about to run it, for the first time or again.
  void pin_unless_migratable() noexcept {
    if (!migratable()) {
      set_home(home_word() & ~static_cast<std::uintptr_t>(mobility::stealable_until_started));
    }
  }
  /// Whether any worker may run it next, once it is ready. Not while it is of high priority, which only orders the
  /// fibers of one worker.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool stealable() const noexcept {
    return (home_word() & (static_cast<std::uintptr_t>(mobility::stealable_until_started) | migration_disabled_bit |
                           high_bit)) == static_cast<std::uintptr_t>(mobility::stealable_until_started);
  }
  [[nodiscard]] bool migratable() const noexcept { return mobility_is(mobility::migratable); }
  [[nodiscard]] bool migration_disabled() const noexcept { return (home_word() & migration_disabled_bit) != 0; }
  /// Whether its runtime traces it: then no fast path is taken for it.
  [[nodiscard]] bool traced() const noexcept { return (home_word() & traced_bit) != 0; }
  /// Whether it has not begun to run.
  [[nodiscard]] bool fresh() const noexcept {
    return state.pc == nullptr || state.pc == arch::detail::entry_plus_8(&arch::start_frame);
  }
  /// Keeps the running fiber on its worker, which has timers of it, until `enable_migration`. False if it stays anyway.
  [[nodiscard]] bool disable_migration() noexcept {
    if (!migratable() || migration_disabled()) {
      return false;
    }
    set_home(home_word() | migration_disabled_bit);
    return true;
  }
  void enable_migration() noexcept { set_home(home_word() & ~migration_disabled_bit); }
  /// As `disable_migration`, for reasons that do not end in reverse order: it stays until `let_go` was called as often
  /// as this returned true, which is always if it is migratable.
  [[nodiscard]] bool hold() noexcept {
    if (!migratable()) {
      return false;
    }
    if (cold().holds++ == 0) {
      static_cast<void>(disable_migration());
    }
    return true;
  }
  void let_go() noexcept {
    if (--cold().holds == 0) {
      enable_migration();
    }
  }
  /// Called when it has ended, before others learn of that: they may put another fiber into the block.
  PIRN_ALWAYS_INLINE void release_block() noexcept { set_home(0); }

  /// Returns the cold part. It is made when first needed, by the spawner before the fiber runs, else by the fiber: on
  /// the fiber's stack, which from then on stays until the fiber is joined, or for a small stack on the heap.
  fiber_cold_part& cold() noexcept {
    if (!has_cold_part()) {
      if (small_stacks::has(memory)) [[unlikely]] {
        make_cold_elsewhere();
      } else {
        ::new (static_cast<void*>(cold_place())) fiber_cold_part;
      }
      set_has_cold_part();
    }
    return *cold_place();
  }
  /// The stack of the fiber itself: for a stolen continuation, that of the fiber which called `fork2`.
  [[nodiscard]] const stack& root_stack() const noexcept;
  /// Returns the stack that holds the address and that is of a first half, its own or one around it, whose continuation
  /// was stolen; empty if no such stack holds it. Forks that are open on its worker are not looked at.
  [[nodiscard]] first_half_stack first_half_at(const void* address) const noexcept;
  /// Whether the address lies on the stack of the fiber itself, or on one that `first_half_at` knows.
  [[nodiscard]] bool has_on_stack(const void* address) const noexcept {
    return root_stack().contains(address) || first_half_at(address).memory != nullptr;
  }
  /// The stack on which it began last, as a guess of where it runs.
  [[nodiscard]] const stack& newest_stack() const noexcept;
  /// Returns the name, empty if it has none.
  [[nodiscard]] const char* name() const noexcept { return has_cold_part() ? cold_place()->name : ""; }
  void set_name(std::string_view text) noexcept {
    fiber_cold_part& part = cold();
    const std::size_t length = std::min(text.size(), fiber_cold_part::name_capacity - 1);
    std::memcpy(part.name, text.data(), length);
    part.name[length] = '\0';
  }
  /// Destroys the fiber's locals and detaches it from its stop token. Called by the fiber, which may suspend in it.
  /// Only if `has_cold_part`.
  void end_cold() noexcept;

  /// Keeps the exception that has ended its body; returns the join_state to end with.
  std::uintptr_t keep_exception(std::exception_ptr what) noexcept {
    cold().exception = std::move(what);
    return join_failed;
  }
  /// Called when the body has ended and its callable is destroyed.
  PIRN_ALWAYS_INLINE void body_ended() noexcept {}

  /// Destroys the cold part. Only if `has_cold_part`.
  void destroy_cold() noexcept;

  /// Whether its stack is a small one. Valid while it lives.
  [[nodiscard]] bool bounded() const noexcept { return (home_word() & bounded_bit) != 0; }

  static constexpr std::uintptr_t traced_bit = 8;
  static constexpr std::uintptr_t bounded_bit = 32;

 private:
  static constexpr std::uintptr_t migration_disabled_bit = 4;
  static constexpr std::uintptr_t high_bit = 16;
  static constexpr std::uintptr_t home_bits = 63;  ///< the mobility and the bits above
  [[nodiscard]] bool mobility_is(mobility moves) const noexcept {
    return (home_word() & static_cast<std::uintptr_t>(moves)) == static_cast<std::uintptr_t>(moves);
  }
  PIRN_ALWAYS_INLINE void set_home(std::uintptr_t value) noexcept {
    platform::atomic_ref<std::uintptr_t>(home_).store(value, platform::memory_order_release);
  }
  /// At the very top of the stack, above the first frame; for a small stack, which has no room for it, the fourth word
  /// of the stack says where.
  [[nodiscard]] PIRN_ALWAYS_INLINE fiber_cold_part* cold_place() const noexcept {
    return small_stacks::has(memory) ? reinterpret_cast<fiber_cold_part*>(memory.slot())
                                     : reinterpret_cast<fiber_cold_part*>(first_frame());
  }
  void make_cold_elsewhere() noexcept;
  static_assert(sizeof(fiber_cold_part) % 16 == 0 && alignof(fiber_cold_part) <= 16,
                "the top of a stack is aligned so");
};

/// A fiber of a scope. It has no handle: the scope knows it by the link, until it reports its end to the scope.
struct child_control : fiber_control, stop_link {
  explicit child_control(std::uint64_t number) noexcept : fiber_control(number, agent_kind::child) {
    join_word.store(join_detached, platform::memory_order_relaxed);
  }
  inherited_context inherited;

  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method): callers know which of the two they have
  std::uintptr_t keep_exception(std::exception_ptr what) noexcept;
  void body_ended() noexcept;
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)
};

/// Returns that of a fiber or thread, which alone may ask; made when first needed.
inherited_context& inherited_context_of(agent& self) noexcept;

// A generator may yield in the first half of a fork2 and so leave the call open while its consumer closes the blocks
// around it. These two are called before a block is closed or taken off; they do nothing in most cases.
/// Gives the open continuations of the running fiber control blocks, which keep what they inherit, if one of them
/// inherits this value.
void publish_inheritors_of(const context_node& value) noexcept;
/// Suspends the running fiber until the second halves that inherit this scope have ended, and detaches them from it.
void await_second_halves_in(const scope& closing) noexcept;
/// Returns that of the caller, or null.
const inherited_context* inherited_context_here() noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
