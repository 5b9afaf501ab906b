// The control block of a fiber. Apart from its stack, which it has only from its start to its end: a thousand fibers
// that are spawned, run once and are joined pass through one stack, which stays in the processor's cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/of_fiber.hpp"
#include "pirn/context/sanitizer.hpp"
#include "pirn/fiber/detail/agent.hpp"
#include "pirn/fiber/stop.hpp"
#include "pirn/stack/small_stacks.hpp"
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

/// Something that a worker resumes: a fiber, or the worker's own scheduler. A link of the run queue's ring while it
/// runs or is ready; `next` also links it in the last-in-first-out run and in an inbox.
struct run_node {
  /// Writes nothing that a fiber has no use for before it is switched out first: a spawn costs as much as it stores.
  run_node() noexcept { state.pc = nullptr; }
  union {
    arch::context state;
  };
  run_node* next;
  union {
    run_node* previous;         ///< in the ring
    const wait_options* waits;  ///< while it is suspended and `agent::waiting`: what for; on its own stack
  };
  [[no_unique_address]] sanitizer_state sanitizer;
};

/// The progress of a fiber towards its end, in one word: one of these, or the address of a `joiner`, with bit 0 set if
/// that is a fiber of the same worker which waits for nothing else: only then may the fiber's end look at the joiner
/// before it has moved the word to join_waking, since another might time out and be gone.
///
/// A fiber whose handle only its own worker has needed so far ends without a read-modify-write: the worker keeps it,
/// and tells all others at its second tick from then. Until then a fiber that does not yield might run for long. So
/// whoever joins elsewhere moves the word to join_remote first, and behind a heavy fence looks whether it was kept by
/// then.
enum join_state : std::uintptr_t {
  join_possible = 0,             ///< runs; a handle exists
  join_detached = 1,             ///< runs; no handle: its end frees the stack
  join_waking = 2,               ///< has ended; its worker touches the block once more, to say so
  join_ended = 3,                ///< has ended and is switched out; the handle frees the stack
  join_ended_cold = 4,           ///< the same, and there is a cold part to destroy
  join_failed = 5,               ///< the same, and its exception is kept there
  join_stolen_continuation = 6,  ///< is a `stolen_continuation`, for good
  join_remote = 8,  ///< as join_possible, and its end must be told at once; even, so without `same_worker_bit`
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
  context_node* values = nullptr;  ///< the newest of those bound
};

/// What most fibers never need, kept off the cache lines that every spawn writes; made when first needed.
struct alignas(16) fiber_cold_part {
  static constexpr std::size_t name_capacity = 32;
  char name[name_capacity] = {};  ///< zero-terminated; longer names are cut
  std::exception_ptr failure;
  fiber_stop_link stop;
  stop_list scopes;  ///< the outermost of those that it has open, and stolen continuations
  local_table* locals = nullptr;
  inherited_context inherited;       ///< of a fiber that is no child
  platform::time_point ready_since;  ///< of one that is traced; by who makes it ready
  unsigned holds = 0;                ///< why migration is disabled for longer than a wait
  /// Where it runs if that is not its own stack: that of the innermost fork2 whose continuation was taken, or, of a
  /// stolen continuation, the one that it was taken on. Further in are only stacks of forks that are open on its
  /// worker.
  const stack* base = nullptr;
  void* c_coroutine = nullptr;  ///< see of_fiber.hpp
  void* usched[2] = {};         ///< the same
  unwinds_under_way unwinds;    ///< the same
};

struct fiber_control : run_node, agent {
  explicit fiber_control(std::uint64_t number, agent_kind what = agent_kind::fiber) noexcept : agent(what, number) {
    memory.forget();
  }
  // -- one cache line with the bases: what a wake-up and a switch touch
  /// The worker that it belongs to; null for a block without a fiber, and for one whose end has been published. Only
  /// that worker resumes it, and it gets another one in two ways only: by that worker's own thread, or by a thief
  /// inside of that worker's stealable queue.
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
  /// A `worker*`, how it may move, and its priority. Outlives the object in its block: the constructor leaves it null,
  /// for others may look.
  std::uintptr_t home_;

 public:
  // -- the next line, which leaves room for a callable of three words
  union {
    stack memory;  ///< null before it has one, and when it has given it back
  };
  platform::atomic<std::uintptr_t> join_word{join_possible};

  /// A fiber that has no stack yet keeps its entry function where the sp will be, and has no pc.
  PIRN_ALWAYS_INLINE void set_entry(arch::switch_entry entry) noexcept {
    state.sp = reinterpret_cast<void*>(entry);
    state.pc = nullptr;
  }
  /// Its stack, on which it begins when it is next resumed. The pc comes last: a signal handler that sees one may walk.
  PIRN_ALWAYS_INLINE void attach_stack(const stack& where) noexcept {
    const auto entry = reinterpret_cast<arch::switch_entry>(state.sp);
    void* const top = below_cold(where);  // not out of `memory`: the processor would wait for what was just written
    memory = where;
    const arch::context begin = arch::prepare(top, entry);
    state.sp = begin.sp;
    state.fp = begin.fp;
    platform::signal_fence();
    platform::atomic_ref<void*>(state.pc).store(begin.pc, platform::memory_order_relaxed);
  }
  /// The same for a fiber with a bounded stack, which has nothing else on it.
  void attach_small_stack(const stack& where) noexcept {
    const auto entry = reinterpret_cast<arch::switch_entry>(state.sp);
    memory = where;
    state = arch::prepare(where.top(), entry);
  }
  /// Its entry function while it has no stack, else null.
  [[nodiscard]] PIRN_ALWAYS_INLINE arch::switch_entry entry_without_stack() const noexcept {
    return state.pc == nullptr ? reinterpret_cast<arch::switch_entry>(state.sp) : nullptr;
  }
  /// Where its first frame begins, once it has a stack.
  [[nodiscard]] PIRN_ALWAYS_INLINE void* first_frame() const noexcept { return below_cold(memory); }
  [[nodiscard]] PIRN_ALWAYS_INLINE static void* below_cold(const stack& where) noexcept {
    return static_cast<char*>(where.top()) - sizeof(fiber_cold_part);
  }

  /// The end as its own worker knows it before it is published in the join word: kept in the state, which has no
  /// other use then; a live fiber has a pc.
  PIRN_ALWAYS_INLINE void set_ended_here(std::uintptr_t outcome, fiber_control** deferred_slot) noexcept {
    state.sp = deferred_slot;
    platform::atomic_ref<void*>(state.pc).store(reinterpret_cast<void*>(outcome), platform::memory_order_release);
  }
  /// Whether it has ended so. By anybody.
  [[nodiscard]] bool deferred() const noexcept {
    void* const pc = platform::atomic_ref<void*>(const_cast<void*&>(state.pc)).load(platform::memory_order_acquire);
    return pc != nullptr && reinterpret_cast<std::uintptr_t>(pc) <= join_failed;
  }
  /// The join_state to end with, or join_possible for a live fiber. Its own worker only.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t ended_here() const noexcept {
    const auto pc = reinterpret_cast<std::uintptr_t>(state.pc);
    return pc <= join_failed ? pc : join_possible;
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool ended_well_here() const noexcept {
    return reinterpret_cast<std::uintptr_t>(state.pc) == join_ended;
  }
  /// Where its worker keeps it until the end is published. Only once it has `ended_here`.
  [[nodiscard]] PIRN_ALWAYS_INLINE fiber_control** deferred_slot() const noexcept {
    return static_cast<fiber_control**>(state.sp);
  }

  /// Whether a fiber that has a home has not ended. Its own worker's thread only, where it may interrupt anything.
  [[nodiscard]] bool lives() const noexcept { return ended_here() == join_possible; }
  /// From here on who lists the fibers of `on` finds it.
  PIRN_ALWAYS_INLINE void assign_worker(worker* on, mobility moves = mobility::pinned,
                                        std::uintptr_t traced = 0) noexcept {
    set_home(reinterpret_cast<std::uintptr_t>(on) | static_cast<std::uintptr_t>(moves) | traced);
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool has_high_priority() const noexcept { return (home_word() & high_bit) != 0; }
  /// By whoever has made the fiber, before it is ready, or by itself.
  void set_high_priority(bool high) noexcept { set_home((home_word() & ~high_bit) | (high ? high_bit : 0)); }
  /// The same for one that moves there, and may move on.
  void move_to(worker* on) noexcept {
    set_home(reinterpret_cast<std::uintptr_t>(on) | (home_word() & home_bits));
    std::uintptr_t before = join_possible;  // its handle stays
    join_word.compare_exchange_strong(before, join_remote, platform::memory_order_relaxed);
  }
  /// Its worker is about to run it for the first time, or again: unless it is migratable it stays.
  void pin_unless_migratable() noexcept {
    if (!migratable()) {
      set_home(home_word() & ~static_cast<std::uintptr_t>(mobility::stealable_until_started));
    }
  }
  /// Whether any worker may run it next, once it is ready: not while it is of high priority, which is a matter between
  /// the fibers of one worker.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool stealable() const noexcept {
    return (home_word() & (static_cast<std::uintptr_t>(mobility::stealable_until_started) | migration_disabled_bit |
                           high_bit)) == static_cast<std::uintptr_t>(mobility::stealable_until_started);
  }
  [[nodiscard]] bool migratable() const noexcept { return mobility_is(mobility::migratable); }
  [[nodiscard]] bool migration_disabled() const noexcept { return (home_word() & migration_disabled_bit) != 0; }
  /// Whether its runtime wants to hear of it: then no fast path is taken for it.
  [[nodiscard]] bool traced() const noexcept { return (home_word() & traced_bit) != 0; }
  /// Whether it has not begun to run.
  [[nodiscard]] bool fresh() const noexcept {
    return state.pc == nullptr || state.pc == arch::detail::entry_plus_8(&arch::start_frame);
  }
  /// Keeps the running fiber on its worker until `enable_migration`, while that has timers of it. False if it stays
  /// anyway.
  [[nodiscard]] bool disable_migration() noexcept {
    if (!migratable() || migration_disabled()) {
      return false;
    }
    set_home(home_word() | migration_disabled_bit);
    return true;
  }
  void enable_migration() noexcept { set_home(home_word() & ~migration_disabled_bit); }
  /// The same for what does not end in reverse order: it stays until `let_go` was called as often as this returned
  /// true, which is always if it is migratable.
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
  /// It has ended, and is about to be known to others, who may put another into the block.
  PIRN_ALWAYS_INLINE void release_block() noexcept { set_home(0); }

  /// The part that is made when first needed, by the spawner before the fiber runs, else by the fiber: on the fiber's
  /// stack, which from then on stays until the fiber is joined, or if that is a small one on the heap.
  fiber_cold_part& cold() noexcept {
    if (!described()) {
      if (small_stacks::has(memory)) [[unlikely]] {
        make_cold_elsewhere();
      } else {
        ::new (static_cast<void*>(cold_place())) fiber_cold_part;
      }
      set_described();
    }
    return *cold_place();
  }
  /// The stack that it runs on, or one further in.
  [[nodiscard]] const stack& runs_on() const noexcept {
    const stack* const elsewhere = described() ? cold_place()->base : nullptr;
    return elsewhere != nullptr ? *elsewhere : memory;
  }
  /// The name, empty if it has none.
  [[nodiscard]] const char* name() const noexcept { return described() ? cold_place()->name : ""; }
  void set_name(std::string_view text) noexcept {
    fiber_cold_part& part = cold();
    const std::size_t length = std::min(text.size(), fiber_cold_part::name_capacity - 1);
    std::memcpy(part.name, text.data(), length);
    part.name[length] = '\0';
  }
  /// Destroys the fiber's locals and ends the tie to its stop token. By the fiber, which may suspend in it. Only if
  /// `described`.
  void end_cold() noexcept;

  /// Keeps the exception that ends its body; returns the join_state to end with.
  std::uintptr_t body_failed(std::exception_ptr what) noexcept {
    cold().failure = std::move(what);
    return join_failed;
  }
  /// The body has ended and its callable is gone.
  PIRN_ALWAYS_INLINE void body_ended() noexcept {}

  /// Destroys the part. Only if `described`.
  void destroy_cold() noexcept;

  /// Whether its stack is a small one. While it lives.
  [[nodiscard]] bool bounded() const noexcept { return (home_word() & bounded_bit) != 0; }

  static constexpr std::uintptr_t traced_bit = 8;
  static constexpr std::uintptr_t bounded_bit = 32;

 private:
  static constexpr std::uintptr_t migration_disabled_bit = 4;
  static constexpr std::uintptr_t high_bit = 16;
  static constexpr std::uintptr_t home_bits = 63;  ///< mobility and these
  [[nodiscard]] bool mobility_is(mobility moves) const noexcept {
    return (home_word() & static_cast<std::uintptr_t>(moves)) == static_cast<std::uintptr_t>(moves);
  }
  PIRN_ALWAYS_INLINE void set_home(std::uintptr_t value) noexcept {
    platform::atomic_ref<std::uintptr_t>(home_).store(value, platform::memory_order_release);
  }
  /// At the very top of the stack, above the first frame; of a small stack, which has no room for it, where the fourth
  /// word of the stack says.
  [[nodiscard]] PIRN_ALWAYS_INLINE fiber_cold_part* cold_place() const noexcept {
    return small_stacks::has(memory) ? reinterpret_cast<fiber_cold_part*>(memory.slot())
                                     : reinterpret_cast<fiber_cold_part*>(first_frame());
  }
  void make_cold_elsewhere() noexcept;
  static_assert(sizeof(fiber_cold_part) % 16 == 0 && alignof(fiber_cold_part) <= 16,
                "the top of a stack is aligned so");
};

/// A fiber of a scope. It has no handle: the scope knows it by the link, until it tells the scope of its end.
struct child_control : fiber_control, stop_link {
  explicit child_control(std::uint64_t number) noexcept : fiber_control(number, agent_kind::child) {
    join_word.store(join_detached, platform::memory_order_relaxed);
  }
  inherited_context inherited;

  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method): who calls them knows which of the two it has
  std::uintptr_t body_failed(std::exception_ptr what) noexcept;
  void body_ended() noexcept;
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)
};

/// Of a fiber or thread, which alone may ask; made when first needed.
inherited_context& inherited_context_of(agent& self) noexcept;
/// Of the caller, null if it has none.
const inherited_context* inherited_context_here() noexcept;

/// Who waits for a fiber's end; on the stack of the waiter.
struct joiner {
  static constexpr std::uintptr_t same_worker_bit = 1;
  agent* who;
  std::uint64_t epoch;
};
static_assert(alignof(joiner) > joiner::same_worker_bit);

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
