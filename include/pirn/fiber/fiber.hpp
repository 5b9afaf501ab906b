// Fibers: spawn, join, detach.
#pragma once

#include <concepts>
#include <cstdint>
#include <expected>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/fiber/detail/worker.hpp"
#include "pirn/fiber/expert/unhandled_exception.hpp"  // IWYU pragma: export
#include "pirn/fiber/fiber_id.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Where and how a fiber is spawned.
struct spawn_options {
  /// Shown in dumps and reports; copied, at most 31 bytes of it.
  std::string_view name = {};
  /// Bytes of stack, 0 for the runtime's default.
  std::size_t stack_size = 0;
  /// The index of a worker, or one of the two constants below.
  int worker = current_worker;
  /// A stop requested through this token ends the fiber's stoppable waits, as `fiber::request_stop` does.
  stop_token stop = {};
  /// Whether any worker may resume the fiber whenever it is ready, wherever `worker` lets it begin. The body must
  /// tolerate that. An address of a thread-local variable (`errno` and other per-thread state of the C library
  /// included) that was taken before a suspension point belongs to another thread after it. Compilers take such an
  /// address early and keep it, even across calls, without a trace in the source. So use thread-local variables only in
  /// functions that contain no suspension point and are not inlined into one that does, and hold no std::mutex while
  /// suspended.
  bool migratable = false;
  /// With `high` the fiber runs before the normal fibers of its worker, as soon as the worker knows that it is ready
  /// (if another worker or thread made it ready, within 50 us or the turn that then runs; a descriptor, within 250). It
  /// then stays on that worker, even with `any_worker` and `migratable`. Its children are `normal` unless they are
  /// spawned otherwise.
  fiber_priority priority = fiber_priority::normal;

  /// The calling fiber's own worker; from a plain thread each worker of the runtime in turn.
  static constexpr int current_worker = -1;
  /// Any worker without other work: the calling fiber's own, unless another worker takes the fiber before it begins.
  /// Once begun it stays on that worker, unless it is migratable.
  static constexpr int any_worker = -2;
};

namespace detail {

/// The slow parts of the functions below.
[[noreturn]] void throw_not_joinable();
[[noreturn]] void throw_joins_itself();
[[noreturn]] void throw_no_runtime();
[[noreturn]] void throw_no_fiber(std::error_code why);
/// Frees the block and rethrows the fiber's exception.
[[noreturn]] void rethrow_exception_of(fiber_control* f);
/// Suspends until the fiber has ended; returns its join_state, or join_possible if the wait ended for another reason.
std::uintptr_t await_end(fiber_control* f, const wait_options& options, wake_reason& reason) noexcept;
/// The part of `await_end` before the wait: looks for an end that is known without one, else returns join_possible.
std::uintptr_t end_if_known(worker* here, fiber_control* f) noexcept;
/// An agent that waits for a fiber's end; lies on its stack.
struct joiner {
  static constexpr std::uintptr_t same_worker_bit = 1;
  waker handle;
};
static_assert(alignof(joiner) > joiner::same_worker_bit);
/// The entry of a wait for the end of `target`.
struct join_entry {
  fiber_control* target;
  joiner me{};
  std::uintptr_t outcome = join_possible;  ///< that of the fiber, unless the wait has ended for another reason
  void append(const waker& handle) noexcept { me.handle = handle; }
  void publish() noexcept;
  [[nodiscard]] auto publisher() noexcept {
    return [this] { publish(); };
  }
  void unlock_unpublished() const noexcept {}
  wake_reason remove_after_wait(const agent& self) noexcept;
};
class fiber_awaiter;
stack_result stack_for_fiber(worker* here, runtime_state& owner, std::size_t stack_size) noexcept;
/// Returns the worker that `which` names, or null.
worker* choose_worker(worker* here, runtime_state& owner, int which) noexcept;
std::uint64_t make_foreign_id() noexcept;
/// Makes a new fiber that is assigned to `to` ready. `here` is the spawning worker, or null for a plain thread.
void launch_slow(worker* here, worker* to, fiber_control* f) noexcept;
/// Ends the fiber's present and later stoppable waits, and those of its scopes. Any thread.
void stop_fiber(fiber_control* f, wake_reason why) noexcept;
/// As `stop_fiber`, but without its scopes: returns the list of those if the caller must walk it.
stop_list* begin_to_stop(fiber_control* f, wake_reason why) noexcept;
void follow_token(fiber_control* f, const stop_token& token) noexcept;

/// For an ending fiber with a cold part, while it still runs: destroys the contents of that part. If an exception ended
/// it and no joiner will take that, tells the handler. Returns the join_state to end with.
PIRN_ASIDE std::uintptr_t end_with_cold_part(worker* w, fiber_control* self, std::uintptr_t outcome) noexcept;
/// Reports to the handler an exception of `whose` that no joiner will take.
void report_unhandled(const agent& whose, std::exception_ptr what) noexcept;
/// As `exception_of`, in the handler of the body of this fiber, which the message names.
[[nodiscard]] std::exception_ptr exception_of_fiber(const fiber_control& whose) noexcept;
/// For an ended fiber that is switched out: marks it as ended and wakes its joiner, or frees it if it has no handle.
void retire(fiber_control* f, std::uintptr_t outcome) noexcept;

PIRN_ALWAYS_INLINE void give_stack_back(worker* here, const stack& memory) noexcept {
  if (here != nullptr) [[likely]] {
    here->stacks.deallocate(memory);
  } else {
    guarded_pool::give_back(memory);
  }
}

PIRN_ALWAYS_INLINE void give_block_back(worker* here, void* block) noexcept {
  if (here != nullptr) [[likely]] {
    here->blocks.deallocate(block);
  } else {
    block_chunk::give(&block, 1);
  }
}

/// Destroys the block of a fiber that has ended with `outcome` and is switched out.
PIRN_ALWAYS_INLINE void free_block(worker* here, fiber_control* f, std::uintptr_t outcome) noexcept {
  f->sanitizer.destroy();
  if (outcome != join_ended) [[unlikely]] {
    f->destroy_cold();
  }
  if (f->memory) {
    give_stack_back(here, f->memory);
  }
  give_block_back(here, f);
}

/// Switches away from a fiber for the last time; does not return. Inlined into its entry function, so that each call
/// has its return: the processor predicts the returns of the next fiber.
PIRN_ALWAYS_INLINE void finish(std::uintptr_t outcome) noexcept {
  worker* w = current_worker();
  fiber_control* const self = running_fiber(w);
  if (self->has_cold_part()) [[unlikely]] {
    outcome = end_with_cold_part(w, self, outcome);
    w = current_worker();  // it may have suspended
  }
  w->count(w->ended);
  arch::word pending = 0;
  const std::uintptr_t state = self->join_word.load(platform::memory_order_acquire);
  if (state == join_possible) {
    w->defer_completion(self, outcome);
    platform::light_fence();  // pairs with the heavy fence in `end_if_known`
    if (self->join_word.load(platform::memory_order_relaxed) != join_possible) [[unlikely]] {
      pending = pending_end(self, w->claim_deferred(self));  // a joiner elsewhere may have looked too early to see it
    }
  } else if (state > join_failed && (state & joiner::same_worker_bit) != 0) {
    // A joiner that only this worker resumes can be made ready at once: it runs after this stack is left. It goes to
    // the back: the other fibers of a batch end meanwhile, so it need not suspend for each.
    const joiner waiting = *reinterpret_cast<const joiner*>(state & ~joiner::same_worker_bit);
    waiting.handle.claim(wake_reason::notified);
    self->release_block();
    self->join_word.store(outcome, platform::memory_order_release);
    w->queue.push(static_cast<fiber_control*>(waiting.handle.agent()));
  } else {
    self->release_block();
    pending = pending_end(self, outcome);
  }
  run_node* const next = w->consume_budget() ? w->queue.leave_to_scheduler() : w->queue.leave();
  const auto by = reinterpret_cast<arch::word>(w);
  // A sanitizer must learn from another stack that this one is no longer in use: there it goes back with the block.
  const bool give_now = std::is_empty_v<sanitizer_state> && outcome == join_ended;
  if (next->state.pc == nullptr) {
    if (give_now && w->stacks.keeps(self->memory)) [[likely]] {
      // It begins on this same stack, at the same first frame: all values used from here on are in registers.
      auto* const f = static_cast<fiber_control*>(next);
      __builtin_prefetch(next->next, 1);
      __builtin_prefetch(reinterpret_cast<const char*>(next->next) + 64, 1);
      // Computed from values written long ago: the processor would wait for those just written to the block of `f`.
      void* const first_frame = self->first_frame();
      w->stacks.reuse_reserved(self->memory);
      f->memory = self->memory;
      w->has_started_one();
      self->memory.forget();
      arch::enter_last(first_frame, f->entry_without_stack(), by, pending);
    }
    attach_reserved_stack(w, next);
  } else if (give_now && w->stacks.keeps(self->memory) && w->stacks.has_room()) {
    w->stacks.deallocate(self->memory);  // its contents stay until this worker next asks for a stack
    self->memory.forget();
  }
  self->sanitizer.leave_for_good(next->sanitizer);
  arch::switch_last(next->state, by, pending);
}

/// Whether the calling fiber of `here` may leave its continuation to other workers while a child runs.
bool may_begin_eager_child(const worker* here) noexcept;
/// Runs the child in place of the calling fiber, whose continuation can be stolen meanwhile. Returns, perhaps on
/// another worker, when it was stolen, or the child has ended or suspended.
void begin_eager_child(worker* here, eager_child_control* child) noexcept;
/// As `finish` for an eager child: continues with its parent if that was not stolen.
[[noreturn]] void finish_eager_child() noexcept;

/// A fiber on a small stack that is checked (`spawn_small`).
struct small_control : fiber_control {
  explicit small_control(std::uint64_t number) noexcept : fiber_control(number) {}
};
/// The first and the last step of such a fiber.
void begin_small(worker* w, arch::word pending) noexcept;
[[noreturn]] void finish_small(std::uintptr_t outcome) noexcept;

/// A callable on the heap: it is too large for a control block, or may throw when it is moved.
template <class F>
struct boxed {
  void operator()() { static_cast<F&&>(*body)(); }
  std::unique_ptr<F> body;
};

/// A control block with the callable behind it.
template <class F, class Control>
struct fiber_block : Control {
  template <class G>
  fiber_block(std::uint64_t number, G&& callable) noexcept : Control(number) {
    ::new (static_cast<void*>(body)) F(std::forward<G>(callable));
  }

  static void entry(arch::word by, arch::word pending) {
    run_node* const self = reinterpret_cast<worker*>(by)->queue.running();
    self->sanitizer.arrive();
    if constexpr (std::is_same_v<Control, small_control>) {
      begin_small(reinterpret_cast<worker*>(by), pending);
    } else if (pending != 0) {
      run_post_switch_at_entry(pending);
    }
    const std::uintptr_t outcome = static_cast<fiber_block*>(self)->execute();
    if constexpr (std::is_same_v<Control, eager_child_control>) {
      finish_eager_child();
    } else if constexpr (std::is_same_v<Control, small_control>) {
      finish_small(outcome);
    } else {
      finish(outcome);
    }
  }

 private:
  /// Returns the join_state to end with. Inlined into a function that never returns, so nothing is saved for a return.
  PIRN_ALWAYS_INLINE std::uintptr_t execute() noexcept {
    std::uintptr_t outcome = join_ended;
    F* const callable = std::launder(reinterpret_cast<F*>(body));
    try {
      static_cast<F&&>(*callable)();
    } catch (...) {
      outcome = this->keep_exception(exception_of_fiber(*this));
    }
    callable->~F();
    this->body_ended();
    return outcome;
  }

  alignas(F) std::byte body[sizeof(F)];
};

/// The smallest stack that a fiber is given.
inline constexpr std::size_t min_stack_bytes = sizeof(fiber_cold_part) + 2048;

/// How a fiber outside of a scope is spawned. A scope has other policies for its children.
struct standalone_policy {
  using control = fiber_control;
  static constexpr bool eager = false;
  /// Runs before the fiber is made ready.
  PIRN_ALWAYS_INLINE void adopt(fiber_control*) const noexcept {}
};

/// Whether a callable fits behind such a control block.
template <class F, class Control>
inline constexpr bool fits_block = sizeof(fiber_block<F, Control>) <= block_chunk::block_bytes &&
                                   alignof(fiber_block<F, Control>) <= block_chunk::alignment;

/// Whether a body can be moved or copied into its block without running code that might throw, suspend or spawn. Other
/// bodies go through `prepared`, before anything is held for the fiber or known about the caller's worker.
template <class F, class Control>
inline constexpr bool is_prepared =
    fits_block<std::decay_t<F>, Control> && std::is_nothrow_constructible_v<std::decay_t<F>, F&&>;

/// Returns the body as a callable that `is_prepared`.
template <class Control, class F>
auto prepared(F&& body) {
  using callable = std::decay_t<F>;
  if constexpr (fits_block<callable, Control> && std::is_nothrow_move_constructible_v<callable>) {
    return callable(std::forward<F>(body));
  } else {
    return boxed<callable>{std::make_unique<callable>(std::forward<F>(body))};
  }
}

/// Makes a new fiber's block, without a stack and not yet visible to others. Null if there is no memory for it.
template <class Control, class F>
PIRN_ALWAYS_INLINE Control* make_block(worker* here, F&& body) noexcept {
  static_assert(is_prepared<F, Control>);
  using block = fiber_block<std::decay_t<F>, Control>;
  void* place = nullptr;
  if (here != nullptr) [[likely]] {
    place = here->blocks.allocate();
  } else {
    block_chunk::take(&place, 1);
  }
  if (place == nullptr) [[unlikely]] {
    return nullptr;
  }
  auto* const f = ::new (place) block(here != nullptr ? here->make_id() : make_foreign_id(), std::forward<F>(body));
  f->set_entry(&block::entry);
  return f;
}

/// Makes a fiber ready on the caller's own worker.
PIRN_ALWAYS_INLINE void launch_here(worker* here, fiber_control* f) noexcept {
  here->count(here->spawned);
  here->queue.push_back(f);
}

/// Spawns a fiber of `owner`, which need not be the caller's runtime.
template <class F, class SpawnPolicy = standalone_policy>
fiber_control* launch(runtime_state& owner, F&& body, const spawn_options& options, std::error_code& error,
                      const SpawnPolicy& policy = {}) {
  static_assert(std::invocable<std::decay_t<F>>, "a fiber runs a callable without parameters");
  using control = typename SpawnPolicy::control;
  if constexpr (!is_prepared<F, control>) {
    return launch(owner, prepared<control>(std::forward<F>(body)), options, error, policy);
  } else {
    worker* here = current_worker();
    if (here != nullptr && &here->owner != &owner) {
      here = nullptr;
    }
    worker* const to = choose_worker(here, owner, options.worker);
    if (to == nullptr) {
      error = std::make_error_code(std::errc::invalid_argument);
      return nullptr;
    }
    const stack_result found = stack_for_fiber(here, owner, options.stack_size);
    if (!found) {
      error = make_error_code(found.error);
      return nullptr;
    }
    control* const f = make_block<control>(here, std::forward<F>(body));
    if (f == nullptr) {
      give_stack_back(here, found.value);
      error = make_error_code(stack_error::out_of_memory);
      return nullptr;
    }
    f->attach_stack(found.value);
    if (!options.name.empty()) {
      f->set_name(options.name);
    }
    f->sanitizer.create(found.value.limit(), found.value.size(), f->name());
    if (options.stop.stop_possible()) {
      follow_token(f, options.stop);
    }
    policy.adopt(f);
    const bool high = options.priority == fiber_priority::high;
    const mobility moves = options.migratable                                     ? mobility::migratable
                           : options.worker == spawn_options::any_worker && !high ? mobility::stealable_until_started
                                                                                  : mobility::pinned;
    f->assign_worker(to, moves, to->traced);
    f->set_high_priority(high);
    if (std::is_same_v<control, fiber_control> && to != here) {
      f->join_word.store(join_remote, platform::memory_order_relaxed);
    }
    if (to->traced != 0) [[unlikely]] {
      trace_spawned(f);
    }
    if constexpr (SpawnPolicy::eager) {
      begin_eager_child(here, f);
    } else if (to == here && moves == mobility::pinned && !high) {
      launch_here(here, f);
    } else {
      launch_slow(here, to, f);
    }
    return f;
  }
}

/// How the slow parts of a spawn take its body: by value if it fits into registers, so that the fast part need not
/// store it in memory for them.
template <class F>
using handed_over = std::conditional_t<std::is_trivially_copyable_v<std::decay_t<F>> && sizeof(std::decay_t<F>) <= 16,
                                       std::decay_t<F>, F&&>;

template <class Body, class SpawnPolicy>
PIRN_NOINLINE fiber_control* launch_or_throw(runtime_state& owner, Body body, const SpawnPolicy& policy) {
  std::error_code error;
  fiber_control* const f = launch(owner, std::forward<Body>(body), spawn_options{}, error, policy);
  if (f == nullptr) {
    throw_no_fiber(error);
  }
  return f;
}

/// Makes a fiber with default options on the caller's worker, from the resources that it has cached.
template <class F, class SpawnPolicy>
PIRN_ALWAYS_INLINE fiber_control* launch_from_cache(worker* here, F&& body, const SpawnPolicy& policy) noexcept {
  here->stacks.reserve_cached();
  auto* const f = make_block<typename SpawnPolicy::control>(here, std::forward<F>(body));
  policy.adopt(f);
  f->assign_worker(here);
  here->has_fiber_to_start();
  launch_here(here, f);
  return f;
}

template <class Body, class SpawnPolicy>
PIRN_NOINLINE fiber_control* launch_refilled(worker* here, Body body, SpawnPolicy policy) {
  if (!here->get_ready_to_spawn() || platform::spawn_may_fail()) {
    return launch_or_throw<Body>(here->owner, std::forward<Body>(body), policy);
  }
  return launch_from_cache(here, std::forward<Body>(body), policy);
}

/// Spawns a fiber with default options on the caller's worker. Its stack is reserved now and chosen when it starts.
/// Everything that may call a function is behind one test, so that the rest saves no registers.
template <class F, class SpawnPolicy = standalone_policy>
PIRN_ALWAYS_INLINE fiber_control* launch_plain(worker* here, F&& body, const SpawnPolicy& policy = {}) {
  static_assert(std::invocable<std::decay_t<F>>, "a fiber runs a callable without parameters");
  using control = typename SpawnPolicy::control;
  if constexpr (!is_prepared<F, control>) {
    auto own = prepared<control>(std::forward<F>(body));
    return launch_plain(current_worker(), std::move(own), policy);
  } else if (here->ready_to_spawn() && !platform::spawn_may_fail()) [[likely]] {
    return launch_from_cache(here, std::forward<F>(body), policy);
  } else {
    return launch_refilled<handed_over<F>>(here, std::forward<F>(body), policy);
  }
}

}  // namespace detail

/// A handle of a fiber, as std::jthread is one of a thread. Move-only; destroying it requests a stop and joins. Not
/// itself thread-safe.
class [[nodiscard]] fiber {
 public:
  using id = fiber_id;

  fiber() noexcept = default;
  fiber(fiber&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  fiber& operator=(fiber&& other) noexcept {
    if (this != &other) {
      reset();
      control_ = std::exchange(other.control_, nullptr);
    }
    return *this;
  }
  PIRN_ALWAYS_INLINE ~fiber() {
    if (control_ != nullptr) [[unlikely]] {
      end(control_);
    }
  }

  /// Whether there is a fiber to join.
  [[nodiscard]] bool joinable() const noexcept { return control_ != nullptr; }
  /// Suspends until the fiber has ended, then rethrows its exception. A stop of the caller does not end this wait.
  /// Throws std::system_error (no_such_process) for an empty handle, (resource_deadlock_would_occur) if a fiber joins
  /// itself.
  PIRN_ALWAYS_INLINE void join() {
    detail::fiber_control* const f = control_;
    detail::worker* const here = detail::current_worker();
    if (f != nullptr && here != nullptr && f->is_pinned_to(here) &&
        f->join_word.load(platform::memory_order_acquire) == detail::join_possible) [[likely]] {
      if (f->ended_well_here() && !f->memory && here->blocks.has_room()) [[likely]] {
        here->claim_deferred(f);
        f->sanitizer.destroy();
        here->blocks.deallocate_in_room(f);
        control_ = nullptr;
        return;
      }
      if (f->ended_here() == detail::join_possible) {
        join_same_worker(here);
        return;
      }
    }
    join_slow();
  }
  /// As `join`, but ends when the deadline passes or the caller is asked to stop: then the handle stays joinable.
  [[nodiscard]] std::expected<void, wait_error> join(time_limit deadline);
  /// Lets the fiber run without a handle; its exception then goes to the handler of unhandled exceptions.
  void detach() noexcept;
  /// Ends the fiber's present stoppable wait and all its later ones with wait_error::stopped.
  void request_stop() noexcept;

  /// Returns the fiber's id; `id()` without a fiber.
  [[nodiscard]] id get_id() const noexcept { return id(number()); }
  /// Returns the fiber's number, unique in its process; 0 without a fiber.
  [[nodiscard]] std::uint64_t number() const noexcept { return control_ != nullptr ? control_->number() : 0; }
  /// Returns the name that it was spawned with.
  [[nodiscard]] std::string_view name() const noexcept { return control_ != nullptr ? control_->name() : ""; }

 private:
  friend class runtime;
  friend class detail::fiber_awaiter;
  template <class F>
  friend fiber spawn(F&& body);
  template <class F>
  friend std::expected<fiber, std::error_code> try_spawn(F&& body, const spawn_options& options);
  template <class F>
  friend std::expected<fiber, std::error_code> try_spawn_bounded(F&& body, const spawn_options& options);
  template <class F>
  friend std::expected<fiber, std::error_code> try_spawn_small(F&& body, const spawn_options& options);

  PIRN_ALWAYS_INLINE explicit fiber(detail::fiber_control* control) noexcept : control_(control) {}
  /// The parts of `join`: for a fiber of `here` that still runs, and for any fiber.
  void join_same_worker(detail::worker* here);
  void join_slow();
  void end_join(std::uintptr_t outcome);
  std::expected<void, wait_error> end_join(std::uintptr_t outcome, wake_reason reason);
  void reset() noexcept;
  /// Requests a stop, joins and frees. By value, so that a handle that is moved at once need not be in memory.
  static void end(detail::fiber_control* f) noexcept;

  detail::fiber_control* control_ = nullptr;
};

/// Spawns `body` as a new fiber of the calling fiber's runtime. The error is that of the stack (category "pirn.stack"),
/// or invalid_argument for a worker that does not exist. Throws the exceptions of moving `body`, and std::system_error
/// (operation_not_permitted) on a plain thread. Not a suspension point.
template <class F>
[[nodiscard]] std::expected<fiber, std::error_code> try_spawn(F&& body, const spawn_options& options) {
  detail::worker* const here = detail::current_worker();
  if (here == nullptr) {
    detail::throw_no_runtime();
  }
  std::error_code error;
  if (auto* const f = detail::launch(here->owner, std::forward<F>(body), options, error)) {
    return fiber(f);
  }
  return std::unexpected(error);
}
template <class F>
[[nodiscard]] std::expected<fiber, std::error_code> try_spawn(F&& body) {
  return try_spawn(std::forward<F>(body), spawn_options{});
}

/// As `try_spawn`, but throws std::system_error where that returns an error, as std::thread does.
template <class F>
fiber spawn(F&& body, const spawn_options& options) {
  auto made = try_spawn(std::forward<F>(body), options);
  if (!made) [[unlikely]] {
    detail::throw_no_fiber(made.error());
  }
  return std::move(*made);
}
/// As `spawn` with the default options: on the caller's worker, no name. The fast path of spawning.
template <class F>
PIRN_ALWAYS_INLINE fiber spawn(F&& body) {
  detail::worker* const here = detail::current_worker();
  if (here == nullptr) [[unlikely]] {
    detail::throw_no_runtime();
  }
  return fiber(detail::launch_plain(here, std::forward<F>(body)));
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
