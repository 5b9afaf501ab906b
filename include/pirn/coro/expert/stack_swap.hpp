// Swapped tasks that take turns on the native stack of the function that dispatches them (after Danilov, "usched:
// stackswap coroutines"). A task that never blocks is a function call. A task that blocks is copied out to a buffer as
// large as its frames, and its frames are dropped; the next one is copied in at the addresses where it ran before.
//
//   struct scheduler {                            // the policy: three operations, here a queue of ready tasks
//     pirn::swapped_task* next() noexcept;
//     void* allocate(std::size_t size) noexcept;
//     void free(void* buffer, std::size_t size) noexcept;
//   };
//   scheduler policy;
//   pirn::stack_swap dispatcher(policy);
//   pirn::swapped_task one;
//   one.assign<&body>(argument);                  // now policy.next() may return it
//   dispatcher.run();                             // body(argument) runs, and may call dispatcher.block()
//
// The address of a local variable is valid only while its swapped task runs: other tasks find their own frames there.
// So nothing outside may keep such an address over a block.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/coro/detail/in_flight.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/coro/detail/running_dispatchers.hpp"
#include "pirn/coro/detail/swap_image.hpp"
#include "pirn/coro/detail/swap_sanitizer.hpp"
#include "pirn/coro/expert/swap_policy.hpp"
#include "pirn/coro/expert/swap_shrink.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/exiting.hpp"
#include "pirn/stack/detail/image_copy.hpp"
#include "pirn/stack/detail/values_by_body.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The reason why a swapped task did not block, or a dispatcher did not run.
enum class swap_error : std::uint8_t {
  none,
  out_of_memory,  ///< no buffer for the image, or for the values it has bound: it runs on as if it had not called
  unwinding,      ///< it is being unwound, and destructors may not block
  running,        ///< the dispatcher runs already
  too_deep,       ///< run was called from deeper in the stack than the frames of the blocked tasks
  shadow_stack,   ///< the process runs under a hardware shadow stack, which no switch moves
  scope_open,     ///< the swapped task has an open pirn::scope, which its image would hide
  nested,         ///< a preemptive dispatcher runs on an OS thread's own stack, in no task of another one
  no_timer,       ///< the system refused the signal or the timer of a preemptive dispatcher
};
/// Returns a whole sentence with the remedy. Static storage.
[[nodiscard]] constexpr const char* to_string(swap_error error) noexcept {
  switch (error) {
    case swap_error::none:
      return "no error";
    case swap_error::out_of_memory:
      return "the policy had no buffer for the image of a swapped task: it continues to run; block again later";
    case swap_error::unwinding:
      return "a swapped task that is being unwound cannot block";
    case swap_error::running:
      return "this dispatcher is already running: its swapped tasks must not call run";
    case swap_error::too_deep:
      return "the frames of blocked swapped tasks lie where run was called this time: call it at the same depth of the "
             "stack as before, or less deep";
    case swap_error::shadow_stack:
      return "this process runs under a hardware shadow stack: start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off";
    case swap_error::scope_open:
      return "a swapped task has an open scope, which could not be found while its frames are copied elsewhere: close "
             "the scope before the task blocks";
    case swap_error::nested:
      return "a dispatcher that preempts runs on the stack of an OS thread, and in no swapped task of another "
             "dispatcher";
    case swap_error::no_timer:
      return "the signal or the timer for preemption was refused: choose a signal from SIGRTMIN to SIGRTMAX";
  }
  return "unknown";
}

/// Counts of the copies that a dispatcher has made.
struct swap_statistics {
  std::uint64_t images = 0;  ///< copied out, and sooner or later copied in
  std::uint64_t bytes = 0;   ///< of those images
};

namespace detail {
/// Says which rule of stack_swap was broken, and ends the program.
[[noreturn]] PIRN_COLD inline void swap_misused(const char* how) noexcept { fail_contract("stack_swap: ", how); }
class swap_core;
template <class Policy>
inline constexpr swap_shrink shrink_of{};
template <class Policy>
  requires requires { Policy::shrink; }
inline constexpr swap_shrink shrink_of<Policy> = Policy::shrink;
}  // namespace detail

/// A swapped task. Six words, meant to be a base or member of a policy's queue element. Must not move from `assign`
/// until it has ended. Not thread-safe; used by the OS thread of its dispatcher.
class swapped_task {
 public:
  swapped_task() noexcept = default;
  /// Keeps the image in the `size` bytes at `buffer` as long as they suffice, and then in a buffer of the policy's. The
  /// caller keeps the ownership of those bytes.
  swapped_task(void* buffer, std::size_t size) noexcept
      : buffer_(static_cast<char*>(buffer)), capacity_(rounded_down(size)) {}
  swapped_task(const swapped_task&) = delete;
  swapped_task& operator=(const swapped_task&) = delete;
  /// A blocked task must not be destroyed: `stack_swap::cancel` and `discard` end it.
  ~swapped_task() {
    if (state_ > fresh && !platform::left_to_exit()) [[unlikely]] {
      detail::swap_misused("a swapped task was destroyed before it ended: cancel or discard it first");
    }
  }

  /// Assigns `body(argument)`, which runs when a policy returns this task. An exception that leaves the body comes out
  /// of `run`. The task must have nothing to do: it is new, or has ended.
  template <auto body, class Argument>
    requires std::invocable<decltype(body), Argument&>
  PIRN_ALWAYS_INLINE void assign(Argument& argument) noexcept {
    if (state_ != idle) [[unlikely]] {
      detail::swap_misused("assign was called for a swapped task that has not ended");
    }
    context_.pc = reinterpret_cast<void*>(&enter<body, Argument>);
    context_.fp = const_cast<void*>(static_cast<const void*>(&argument));
    state_ = fresh;
  }

  /// Returns whether it has nothing to do: it has ended, or never had a body.
  [[nodiscard]] bool done() const noexcept { return state_ == idle; }
  /// Returns the size of its image in bytes, as of its last block.
  [[nodiscard]] std::size_t image_size() const noexcept { return size_; }

 private:
  template <swap_policy Policy>
  friend class stack_swap;
  template <class Policy>
  friend class preemptive_swap;
  friend class detail::swap_core;

  // Values of state_. Otherwise it is the address of the dispatcher, perhaps with `cancelled` added.
  static constexpr std::uintptr_t idle = 0;
  static constexpr std::uintptr_t fresh = 1;
  static constexpr std::uintptr_t cancelled = 2;
  // Bits of capacity_, a multiple of swap_block.
  static constexpr std::uint32_t owned = 1;       // the policy owns the buffer
  static constexpr std::uint32_t shrinks = 2;     // the policy's, and so large that swap_shrink applies to it
  static constexpr std::uint32_t found = 4;       // the unit of a count: blocks in a row that found it too large
  static constexpr std::uint32_t all_found = 12;  // the bits of that count
  static constexpr std::uint32_t flags = 15;

  using entry = ending(PIRN_NONE*)(void* argument, std::exception_ptr& thrown);
  template <auto body, class Argument>
  PIRN_NONE static ending enter(void* argument, std::exception_ptr& thrown) {
    return run_unwindable([argument]() __attribute__((always_inline)) { body(*static_cast<Argument*>(argument)); },
                          thrown);
  }
  static std::uint32_t rounded_down(std::size_t size) noexcept {
    constexpr std::size_t max = UINT32_MAX;
    return static_cast<std::uint32_t>((size < max ? size : max) & ~(detail::swap_block - 1));
  }
  /// Whether a block with an image of `size` bytes that fits has to count or to shrink.
  template <swap_shrink rule>
  [[nodiscard]] PIRN_ALWAYS_INLINE bool is_large_for(std::size_t size) const noexcept {
    return (capacity_ & shrinks) != 0 && (rule.too_large(capacity_, size) || (capacity_ & all_found) != 0);
  }

  arch::context context_;  // before it begins: pc is its entry, fp its argument
  char* buffer_ = nullptr;
  std::uint32_t capacity_ = 0;  // of the buffer, with flags
  std::uint32_t size_ = 0;      // of the image in it
  std::uintptr_t state_ = idle;
  [[no_unique_address]] detail::swap_sanitizer sanitizer_;
};

namespace detail {
/// The part of a dispatcher that does not depend on its policy.
class swap_core {
 protected:
  swap_core() noexcept = default;
  ~swap_core() {
    if (running_ && !platform::left_to_exit()) {
      swap_misused("a dispatcher was destroyed while it runs");
    }
  }
  [[nodiscard]] std::uintptr_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }

  /// Copies an image into its place and resumes it. The caller's sp is below it.
  [[noreturn]] PIRN_UNSANITIZED PIRN_ALWAYS_INLINE void resume(swapped_task& task) noexcept {
    current_ = &task;
    copy_image(place_.end() - task.size_, task.buffer_, task.size_);
    arch::switch_last(task.context_, 0, 0);
  }
  [[noreturn]] PIRN_UNSANITIZED PIRN_NONE static void resume_from_below(void* /*pc*/, void* /*sp*/, void* /*fp*/,
                                                                        arch::word core, arch::word task, arch::word,
                                                                        arch::word) {
    reinterpret_cast<swap_core*>(core)->resume(*reinterpret_cast<swapped_task*>(task));
  }
  /// As `resume`, but from anywhere in the dispatching loop, whose frame lies where the image is copied.
  [[noreturn]] PIRN_UNSANITIZED void resume_over_loop(swapped_task& task) noexcept {
    loop_sanitizer_.leave_for_good(task.sanitizer_);
    swap_sanitizer::clear(place_.end() - task.size_, task.size_);
    enter_for_good<&resume_from_below>(place_.below(task.size_, swap_floor()), &task);
  }
  /// Calls `entry` on the stack that ends at `top`; the caller's frames are no longer needed.
  template <arch::transfer_entry entry>
  [[noreturn]] PIRN_UNSANITIZED PIRN_ALWAYS_INLINE void enter_for_good(void* top, swapped_task* task) noexcept {
    arch::peer nobody;
    arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(this), reinterpret_cast<arch::word>(task), 0,
                                           0};
    arch::transfer_into<entry>(top, nobody, words);
    __builtin_unreachable();
  }
  [[noreturn]] PIRN_UNSANITIZED void return_to_run() noexcept {
    loop_sanitizer_.leave_for_good(main_sanitizer_);
    arch::switch_last(run_, 0, 0);
  }
  /// Checks that `task` is blocked in this dispatcher, and prepares its unwind if it is cancelled.
  PIRN_COLD void look_at(swapped_task& task) noexcept {
    if (task.state_ != (address() | swapped_task::cancelled)) {
      swap_misused(task.state_ == swapped_task::idle ? "next returned a swapped task that has ended"
                                                     : "next returned a swapped task of another dispatcher");
    }
    unwinding_.emplace("swapped task");
  }

  /// Detaches the open blocks of the running swapped task.
  PIRN_COLD swap_error take_along(taken_blocks& to) const {
    const body_stack image{0, reinterpret_cast<arch::word>(place_.top()), nullptr, true};
    try {
      to = take_blocks(&image, stack_position());
      return swap_error::none;
    } catch (const std::bad_alloc&) {
      return swap_error::out_of_memory;
    } catch (const std::logic_error&) {
      return swap_error::scope_open;
    }
  }
  /// Begins `task`. Returns when it has ended, on the loop that runs by then.
  PIRN_ALWAYS_INLINE ending launch(swapped_task& task) {
    current_ = &task;
    task.state_ = address();
    ++started_;
    return reinterpret_cast<swapped_task::entry>(task.context_.pc)(task.context_.fp, thrown_);
  }

  // The running task; `nobody_` while that task is being unwound, and while no task runs.
  swapped_task* current_ = &nobody_;
  swap_place place_;
  swap_statistics statistics_;
  arch::context run_;        // the caller of run
  std::size_t started_ = 0;  // swapped tasks that have begun and not ended
  swapped_task* unwound_ = nullptr;
  std::optional<forced_unwind> unwinding_;
  std::exception_ptr thrown_;
  bool running_ = false;
  native_stack stack_;   // looked up when a task with too small a buffer blocks
  swapped_task nobody_;  // has no buffer, so its block always takes the slow path
  values_by_body variables_{this, [](const void* of) noexcept -> const void* {
                              const auto& self = *static_cast<const swap_core*>(of);
                              return self.current_ != &self.nobody_ ? self.current_ : self.unwound_;
                            }};
  [[no_unique_address]] swap_sanitizer main_sanitizer_;
  [[no_unique_address]] swap_sanitizer loop_sanitizer_;
};
}  // namespace detail

/// Dispatches swapped tasks on the native stack of the OS thread that calls `run`. A process may have several
/// dispatchers, and so may an OS thread. Not thread-safe: other threads hand over work through `policy`. Must not move.
template <swap_policy Policy>
class stack_swap : detail::swap_core {
 public:
  /// Makes a dispatcher that asks `policy`, which must outlive it.
  explicit stack_swap(Policy& policy) noexcept : policy_(policy) {}
  stack_swap(const stack_swap&) = delete;
  stack_swap& operator=(const stack_swap&) = delete;

  /// Runs the tasks that the policy returns until it returns null. Rethrows an exception that leaves a body; the other
  /// tasks are then still blocked, and another `run` continues them. While any are blocked, it must be called where it
  /// was called before, at most one KiB deeper, on the stack of the same OS thread.
  swap_error run() {
    if (detail::maybe_in_flight()) {
      const detail::saved_exception_state callers;
      return run_here();
    }
    return run_here();
  }

  /// Blocks the running swapped task: returns when the policy has returned it again, or unwinds if it was cancelled
  /// meanwhile. With an error it has not blocked. Exceptions in flight stay with the task, and so do values that it has
  /// bound (context_value); with an open scope it cannot block. While its buffer is large enough, and not much too
  /// large (`swap_shrink`), nothing is allocated.
  /// Must not be called from a coroutine that runs inside a swapped task. A coroutine on a separate stack ends the
  /// program with a message. But one whose stack lies in a frame of the swapped task (`frame_buffer`) cannot be
  /// distinguished from it, and the frames below that stack are lost.
  [[nodiscard]] PIRN_ALWAYS_INLINE swap_error block() {
    swapped_task& self = *current_;
    const std::size_t size = place_.size_at(detail::swap_floor());
    // A function with a call in it has no red zone, so the function that this is inlined into has nothing below its sp.
    // (Should this call become a tail call, the call of forced_unwind::raise remains.)
    if (size > self.capacity_ || self.is_large_for<shrink>(size) || detail::maybe_in_flight()) [[unlikely]] {
      return block_out_of_line();
    }
    swap_out_and_in(self, size);
    unwind_if_cancelled(self);
    return swap_error::none;
  }

  /// Ends the running swapped task: its frames are unwound.
  [[noreturn]] void abort() {
    if (current_ == &nobody_) {
      detail::swap_misused(unwinding_ ? "abort was called while the swapped task is being unwound"
                                      : "abort was called outside of a swapped task");
    }
    unwound_ = std::exchange(current_, &nobody_);
    exception_globals& globals = exception_globals::of_thread();
    const exception_globals own = std::exchange(globals, {});
    unwinding_.emplace("swapped task");
    globals = own;
    unwinding_->raise();
  }

  /// Ends a task that is not running. One that has begun is unwound when the policy returns it, which the policy must
  /// do; a fresh one has nothing to do any more, and must not be returned.
  void cancel(swapped_task& task) noexcept {
    if (task.state_ == swapped_task::fresh) {
      task.state_ = swapped_task::idle;
    } else if (task.state_ == address() && &task != current_) {
      task.state_ |= swapped_task::cancelled;
    } else if (task.state_ != swapped_task::idle && task.state_ != (address() | swapped_task::cancelled)) {
      detail::swap_misused("cancel was called for a swapped task that runs, or that is another dispatcher's");
    }
  }

  /// Drops a blocked task, as if by longjmp: only its coroutine_locals are destroyed. The policy must not return it.
  void discard(swapped_task& task) noexcept {
    if ((task.state_ & ~swapped_task::cancelled) != address() || &task == current_ || &task == unwound_) {
      detail::swap_misused("discard was called for a swapped task that is not blocked here");
    }
    task.sanitizer_.discard();
    variables_.end(&task);
    give_back(task);
    end(task);
  }

  /// Returns the running swapped task, or null while none runs or one is being unwound.
  [[nodiscard]] swapped_task* current() noexcept { return current_ == &nobody_ ? nullptr : current_; }
  /// Returns the statistics of all tasks so far.
  [[nodiscard]] const swap_statistics& statistics() const noexcept { return statistics_; }

 private:
  template <class>
  friend class preemptive_swap;
  static constexpr swap_shrink shrink = detail::shrink_of<Policy>;
  static_assert(shrink.ratio != 1 && shrink.after >= 1 && shrink.after <= 4,
                "swap_shrink: a ratio of 2 or more (0: never), after 1 to 4 blocks");

  PIRN_NOINLINE swap_error run_here() {
    if (running_) {
      return swap_error::running;
    }
    if (arch::shadow_stack_active()) {
      return swap_error::shadow_stack;
    }
    const char* const floor = detail::swap_floor();
    if (started_ == 0) {
      place_.choose(floor);
    } else if (!place_.is_below(floor)) {
      return swap_error::too_deep;
    }
    running_ = true;
    detail::running_dispatchers::begun(place_.top(), variables_,
                                       detail::running_dispatchers::any_around(floor, stack_));
    main_sanitizer_.leave(loop_sanitizer_);
    arch::peer resumer;
    arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(this), 0, 0, 0};
    detail::running_dispatchers::mark(place_.top(), variables_);
    arch::transfer_into<&begin>(place_.top(), resumer, words);
    main_sanitizer_.arrive();
    detail::running_dispatchers::ended(place_.top(), variables_);
    running_ = false;
    if (thrown_ != nullptr || forced_unwind::foreign_on_its_way()) {
      detail::rethrow_of_body(std::exchange(thrown_, nullptr));
    }
    return swap_error::none;
  }

  [[noreturn]] PIRN_UNSANITIZED PIRN_NONE static void begin(void* pc, void* sp, void* fp, arch::word dispatcher,
                                                            arch::word, arch::word, arch::word) {
    stack_swap& self = *reinterpret_cast<stack_swap*>(dispatcher);
    self.run_ = {pc, sp, fp};
    self.loop_sanitizer_.arrive();
    self.loop(self.policy_.next());
  }
  [[noreturn]] PIRN_UNSANITIZED PIRN_NONE static void begin_anew(void* /*pc*/, void* /*sp*/, void* /*fp*/,
                                                                 arch::word dispatcher, arch::word next, arch::word,
                                                                 arch::word) {
    stack_swap& self = *reinterpret_cast<stack_swap*>(dispatcher);
    self.loop_sanitizer_.arrive();
    self.loop(reinterpret_cast<swapped_task*>(next));
  }
  /// The dispatching loop. It belongs to the image of the task that blocks in it, and begins anew when the next task is
  /// fresh.
  [[noreturn]] PIRN_UNSANITIZED PIRN_ALWAYS_INLINE void loop(swapped_task* next) {
    while (next != nullptr) {
      if (next->state_ != swapped_task::fresh) {
        if (next->state_ != address()) [[unlikely]] {
          look_at(*next);
        }
        resume_over_loop(*next);
      }
      if (const ending how = launch(*next); how != ending::returned) [[unlikely]] {
        end_of_unwind(how);
      }
      end_current();
      next = policy_.next();
    }
    return_to_run();
  }

  PIRN_ALWAYS_INLINE void end(swapped_task& task) noexcept {
    task.state_ = swapped_task::idle;
    --started_;
  }
  PIRN_UNSANITIZED PIRN_ALWAYS_INLINE void end_current() noexcept {
    variables_.end(current_);
    swapped_task& task = *std::exchange(current_, &nobody_);
    if ((task.capacity_ & swapped_task::owned) != 0) {
      give_back(task);
    }
    end(task);
  }
  /// Handles an end by an exception, which `run` rethrows, by an unwind, or by both.
  PIRN_COLD void end_of_unwind(ending how) noexcept {
    if (unwinding_) {
      unwinding_.reset();
      current_ = std::exchange(unwound_, nullptr);
    }
    if (how == ending::threw) {
      end_current();
      return_to_run();
    }
  }
  PIRN_COLD void give_back(swapped_task& task) noexcept {
    if ((task.capacity_ & swapped_task::owned) != 0) {
      policy_.free(task.buffer_, task.capacity_ & ~swapped_task::flags);
      task.buffer_ = nullptr;
      task.capacity_ = 0;
    }
  }

  /// Gives `task` a buffer of the policy's, instead of the one that it has.
  PIRN_COLD void exchange_buffer(swapped_task& task, void* buffer, std::size_t size) noexcept {
    give_back(task);
    task.buffer_ = static_cast<char*>(buffer);
    task.capacity_ =
        static_cast<std::uint32_t>(size) | swapped_task::owned | (shrink.applies_to(size) ? swapped_task::shrinks : 0);
  }
  /// Counts a block that finds the buffer too large; after enough in a row exchanges it, if there is memory.
  PIRN_COLD void shrink_buffer(swapped_task& task, std::size_t size) noexcept {
    if (!shrink.too_large(task.capacity_, size)) {
      task.capacity_ &= ~swapped_task::all_found;
    } else if ((task.capacity_ & swapped_task::all_found) / swapped_task::found + 1 < shrink.after) {
      task.capacity_ += swapped_task::found;
    } else {
      task.capacity_ &= ~swapped_task::all_found;
      if (void* const smaller = policy_.allocate(shrink.size_for(size)); smaller != nullptr) {
        exchange_buffer(task, smaller, shrink.size_for(size));
      }
    }
  }

  /// Blocks, and takes exceptions in flight and bound values along. Exchanges the buffer first if it is too small, or
  /// much too large.
  PIRN_NOINLINE swap_error block_out_of_line() {
    const swapped_task& self = *current_;
    const swap_error how = block_if([] { return true; }, [] {});
    if (how == swap_error::none) {
      unwind_if_cancelled(self);
    }
    return how;
  }
  /// Prepares a block, and asks `wanted` whether it takes place; `back` is called when the task runs again, before its
  /// exceptions in flight are back. Does not unwind.
  template <class Wanted, class Back>
  PIRN_ALWAYS_INLINE swap_error block_if(Wanted wanted, Back back) {
    swapped_task& self = *current_;
    if (current_ == &nobody_) {
      if (unwinding_) {
        return swap_error::unwinding;
      }
      detail::swap_misused("block was called outside of a swapped task");
    }
    const std::size_t size = place_.size_at(detail::swap_floor());
    if (size > self.capacity_) {
      // So large an image is also a sign of another stack.
      if (!place_.may_hold(detail::swap_floor(), stack_) || size > UINT32_MAX - detail::swap_block) {
        detail::swap_misused("block was called on another stack than the dispatcher's, a coroutine's for example");
      }
      void* const larger = policy_.allocate(size);
      if (larger == nullptr) {
        return swap_error::out_of_memory;
      }
      exchange_buffer(self, larger, size);
    } else if (self.is_large_for<shrink>(size)) {
      shrink_buffer(self, size);
    }
    detail::taken_blocks blocks;
    if (detail::bodies_have_blocks()) {
      if (const swap_error why = take_along(blocks); why != swap_error::none) {
        return why;
      }
    }
    const bool blocks_now = wanted();
    if (blocks_now && detail::maybe_in_flight()) {
      const detail::saved_exception_state own;
      swap_out_and_in(self, size);
      back();
    } else if (blocks_now) {
      swap_out_and_in(self, size);
      back();
    }
    detail::put_blocks(blocks);
    return swap_error::none;
  }

  PIRN_ALWAYS_INLINE void unwind_if_cancelled(const swapped_task& self) {
    if ((self.state_ & swapped_task::cancelled) != 0) [[unlikely]] {
      unwound_ = std::exchange(current_, &nobody_);
      unwinding_->raise();
    }
  }

  /// Saves an image of `size` bytes, to which the caller's frame belongs, and runs the next task. Returns when `self`
  /// is next again.
  PIRN_ALWAYS_INLINE void swap_out_and_in(swapped_task& self, std::size_t size) noexcept {
    swapped_task* const next = policy_.next();
    if (next == &self) [[unlikely]] {
      return;
    }
    std::size_t size_in = 0;
    detail::swap_sanitizer* arriving = &main_sanitizer_;
    if (next != nullptr) {
      if (next->state_ == address()) [[likely]] {
        size_in = next->size_;
        arriving = &next->sanitizer_;
      } else if (next->state_ == swapped_task::fresh) {
        arriving = &loop_sanitizer_;
      } else {
        look_at(*next);
        size_in = next->size_;
        arriving = &next->sanitizer_;
      }
    }
    self.sanitizer_.leave(*arriving);
    arch::peer resumer;
    arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(this), reinterpret_cast<arch::word>(next), size,
                                           size_in};
    arch::transfer_into<&leave>(place_.below(size > size_in ? size : size_in), resumer, words);
    self.sanitizer_.arrive();
  }

  /// The other side of `swap_out_and_in`, below both images: copies one image out and the other in.
  [[noreturn]] PIRN_NONE PIRN_UNSANITIZED_INLINE static void leave(void* pc, void* sp, void* fp, arch::word dispatcher,
                                                                   arch::word next, arch::word size,
                                                                   arch::word size_in) {
    stack_swap& self = *reinterpret_cast<stack_swap*>(dispatcher);
    swapped_task& task = *self.current_;
    task.context_ = {pc, sp, fp};
    task.size_ = static_cast<std::uint32_t>(size);
    char* const low = self.place_.end() - size;
    detail::swap_sanitizer::clear(low, size);
    detail::copy_image(task.buffer_, low, size);
    ++self.statistics_.images;
    self.statistics_.bytes += size;
    if (size_in != 0) [[likely]] {
      self.resume(*reinterpret_cast<swapped_task*>(next));
    }
    if (next == 0) {
      self.current_ = &self.nobody_;
      arch::switch_last(self.run_, 0, 0);
    }
    self.template enter_for_good<&begin_anew>(self.place_.top(), reinterpret_cast<swapped_task*>(next));
  }

  Policy& policy_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
