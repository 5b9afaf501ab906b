// Swapped tasks that take turns on the native stack of whoever dispatches them (after Danilov, "usched: stackswap
// coroutines"). One that never blocks is a function call. One that blocks is copied out to a buffer as large as the
// frames that it has, and its frames are dropped; the next is copied in at the addresses where it ran before.
//
//   struct scheduler {                            // the policy: three operations, here a queue of who is ready
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
// The address of a local variable means something only while the swapped task that it belongs to runs: others find
// their own frames there. So nothing outside may keep one over a block.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/forced_unwind.hpp"
#include "pirn/coro/detail/in_flight.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/coro/detail/running_dispatchers.hpp"
#include "pirn/coro/detail/swap_image.hpp"
#include "pirn/coro/detail/swap_sanitizer.hpp"
#include "pirn/detail/exiting.hpp"
#include "pirn/stack/detail/image_copy.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class swapped_task;

/// Why a swapped task did not block, or a dispatcher did not run.
enum class swap_error : std::uint8_t {
  none,
  out_of_memory,  ///< no buffer for the image, or none for what it has bound: it runs on, as if it had not called
  unwinding,      ///< it is being unwound, and destructors may not block
  running,        ///< the dispatcher runs already
  too_deep,       ///< run was called from deeper in the stack than the frames of those that are blocked
  shadow_stack,   ///< the process runs under a hardware shadow stack, which no switch moves
  scope_open,     ///< the swapped task has a pirn::scope open, which nobody would find in its image
};
/// A whole sentence that says what to do. Static storage.
[[nodiscard]] constexpr const char* to_string(swap_error error) noexcept {
  switch (error) {
    case swap_error::none:
      return "no error";
    case swap_error::out_of_memory:
      return "the policy had no buffer for the image of a swapped task: it runs on; block again later";
    case swap_error::unwinding:
      return "a swapped task that is being unwound cannot block";
    case swap_error::running:
      return "this dispatcher runs already: its swapped tasks must not call run";
    case swap_error::too_deep:
      return "blocked swapped tasks have their frames where run was called this time: call it where it was called "
             "before, or less deep in the stack";
    case swap_error::shadow_stack:
      return "this process runs under a hardware shadow stack: start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off";
    case swap_error::scope_open:
      return "a swapped task has a scope open, which nobody would find where its frames are copied: close it "
             "before "
             "it blocks";
  }
  return "unknown";
}

/// What the user decides. `next` returns who runs now: one that was assigned a body and has not begun, or one that is
/// blocked, or null to let `run` return; it runs on the stack of whoever blocks, and returning that one again costs no
/// copy. `allocate` returns at least `size` bytes, or null; `free` gets them back with the same size. None of them may
/// block or destroy a swapped task that is calling `block`.
template <class P>
concept swap_policy = requires(P& policy, std::size_t size, void* buffer) {
  { policy.next() } noexcept -> std::same_as<swapped_task*>;
  { policy.allocate(size) } noexcept -> std::same_as<void*>;
  { policy.free(buffer, size) } noexcept;
};

/// A policy of three functions, chosen at run time.
struct swap_callbacks {
  swapped_task* (*next_one)(void* user) = nullptr;
  void* (*allocate_buffer)(void* user, std::size_t size) = nullptr;
  void (*free_buffer)(void* user, void* buffer, std::size_t size) = nullptr;
  void* user = nullptr;

  swapped_task* next() const noexcept { return next_one(user); }
  void* allocate(std::size_t size) const noexcept { return allocate_buffer(user, size); }
  void free(void* buffer, std::size_t size) const noexcept { free_buffer(user, buffer, size); }
};

/// What a dispatcher has copied.
struct swap_statistics {
  std::uint64_t images = 0;  ///< copied out, and sooner or later in
  std::uint64_t bytes = 0;   ///< of those images
};

namespace detail {
/// Says which rule of stack_swap was broken, and ends the program.
[[noreturn]] PIRN_COLD inline void swap_misused(const char* how) noexcept {
  std::fputs("pirn: stack_swap: ", stderr);
  std::fputs(how, stderr);
  std::fputc('\n', stderr);
  std::abort();
}
class swap_core;
}  // namespace detail

/// A swapped task. Six words, meant to be a base or member of what a policy queues. Must stay where it is from
/// `assign` until it has ended. Not thread-safe; used by the OS thread of its dispatcher.
class swapped_task {
 public:
  swapped_task() noexcept = default;
  /// Its image goes into the `size` bytes at `buffer` as long as they are enough, and then into one of the policy's.
  /// They stay the caller's.
  swapped_task(void* buffer, std::size_t size) noexcept
      : buffer_(static_cast<char*>(buffer)), capacity_(rounded_down(size)) {}
  swapped_task(const swapped_task&) = delete;
  swapped_task& operator=(const swapped_task&) = delete;
  /// One that is blocked must not be destroyed: `stack_swap::cancel` and `discard` end it.
  ~swapped_task() {
    if (state_ > fresh && !platform::left_to_exit()) [[unlikely]] {
      detail::swap_misused("a swapped task was destroyed before it ended: cancel or discard it first");
    }
  }

  /// Gives it something to do: `body(argument)`, when a policy returns it. What leaves the body as an exception comes
  /// out of `run`. It must not have anything to do yet, or must have ended.
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

  /// Whether it has nothing to do: it has ended, or was never given anything.
  [[nodiscard]] bool done() const noexcept { return state_ == idle; }
  /// Bytes of its image the last time that it blocked.
  [[nodiscard]] std::size_t image_size() const noexcept { return size_; }

 private:
  template <swap_policy Policy>
  friend class stack_swap;
  friend class detail::swap_core;

  // Values of state_; else it is the address of the dispatcher, and `cancelled` may be added.
  static constexpr std::uintptr_t idle = 0;
  static constexpr std::uintptr_t fresh = 1;
  static constexpr std::uintptr_t cancelled = 2;
  static constexpr std::uint32_t owned = 1;  // a bit of capacity_: the buffer is the policy's

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

  arch::context context_;  // before it begins: pc is its entry, fp its argument
  char* buffer_ = nullptr;
  std::uint32_t capacity_ = 0;  // of the buffer
  std::uint32_t size_ = 0;      // of the image in it
  std::uintptr_t state_ = idle;
  [[no_unique_address]] detail::swap_sanitizer sanitizer_;
};

namespace detail {
/// What of a dispatcher does not depend on its policy.
class swap_core {
 protected:
  swap_core() noexcept = default;
  ~swap_core() {
    if (running_ && !platform::left_to_exit()) {
      swap_misused("a dispatcher was destroyed while it runs");
    }
  }
  [[nodiscard]] std::uintptr_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }

  /// Puts an image into its place and goes on with it. The caller's sp is below it.
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
  /// The same from anywhere in the dispatching loop, whose frame is where the image goes.
  [[noreturn]] PIRN_UNSANITIZED void resume_over_loop(swapped_task& task) noexcept {
    loop_sanitizer_.leave_for_good(task.sanitizer_);
    swap_sanitizer::clear(place_.end() - task.size_, task.size_);
    enter_for_good<&resume_from_below>(place_.below(task.size_, swap_floor()), &task);
  }
  /// Calls `entry` on the stack that ends at `top`; nothing of the caller is needed any more.
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
  /// Checks that `task` is blocked here; of one that is to be unwound, makes the unwind ready.
  PIRN_COLD void look_at(swapped_task& task) noexcept {
    if (task.state_ != (address() | swapped_task::cancelled)) {
      swap_misused(task.state_ == swapped_task::idle ? "next returned a swapped task that has ended"
                                                     : "next returned a swapped task of another dispatcher");
    }
    unwinding_.emplace("swapped task");
  }

  /// Takes off what the swapped task that runs has open.
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
  /// Where `task` begins. Returns when it has ended, on whatever loop it is then.
  PIRN_ALWAYS_INLINE ending launch(swapped_task& task) {
    current_ = &task;
    task.state_ = address();
    ++started_;
    return reinterpret_cast<swapped_task::entry>(task.context_.pc)(task.context_.fp, thrown_);
  }

  // Who runs; `nobody_` while that one is being unwound, and while none does.
  swapped_task* current_ = &nobody_;
  swap_place place_;
  swap_statistics statistics_;
  arch::context run_;        // the caller of run
  std::size_t started_ = 0;  // swapped tasks that have begun and not ended
  swapped_task* unwound_ = nullptr;
  std::optional<forced_unwind> unwinding_;
  std::exception_ptr thrown_;
  bool running_ = false;
  native_stack stack_;   // looked up when somebody blocks whose buffer is too small
  swapped_task nobody_;  // has no buffer, so blocking is never quick for it
  [[no_unique_address]] swap_sanitizer main_sanitizer_;
  [[no_unique_address]] swap_sanitizer loop_sanitizer_;
};
}  // namespace detail

/// Dispatches swapped tasks on the native stack of the OS thread that calls `run`. A process may have several, an
/// OS thread too. Not thread-safe: `policy` is where other threads hand something over. Must not move.
template <swap_policy Policy>
class stack_swap : detail::swap_core {
 public:
  explicit stack_swap(Policy& policy) noexcept : policy_(policy) {}
  stack_swap(const stack_swap&) = delete;
  stack_swap& operator=(const stack_swap&) = delete;

  /// Runs who the policy says until it says nobody. Rethrows what left a body, whereupon the others are still blocked
  /// and another `run` goes on with them. While any are blocked, it must be called where it was called before, not
  /// more than a KiB deeper, on the stack of the same OS thread.
  swap_error run() {
    if (detail::maybe_in_flight()) {
      const detail::saved_exception_state callers;
      return run_here();
    }
    return run_here();
  }

  /// Blocks the swapped task that runs: returns when the policy has returned it again, and by an unwind if it was
  /// cancelled meanwhile. With an error it has not blocked. Exceptions in flight stay with it, and so do values that it
  /// has bound (context_value); with a scope open it cannot block. Once its buffer is large enough, nothing is
  /// allocated. Not from a coroutine that runs inside a swapped task: one on a stack of its own
  /// ends the program with a message, but one whose stack lies in a frame of the swapped task (`frame_buffer`)
  /// cannot be told from it, and the frames below that stack are lost.
  [[nodiscard]] PIRN_ALWAYS_INLINE swap_error block() {
    swapped_task& self = *current_;
    const std::size_t size = place_.size_at(detail::swap_floor());
    // A function with a call in it has no red zone: whoever this is inlined into has nothing below its sp. (Should this
    // one become a tail call, that of forced_unwind::raise is still there.)
    if (size > self.capacity_ || detail::maybe_in_flight()) [[unlikely]] {
      return block_out_of_line();
    }
    swap_out_and_in(self, size);
    unwind_if_cancelled(self);
    return swap_error::none;
  }

  /// Ends the swapped task that runs: its frames are unwound.
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

  /// Ends one that does not run: one that has begun is unwound when the policy returns it, which it must; one that has
  /// not has nothing to do any more, and must not be returned.
  void cancel(swapped_task& task) noexcept {
    if (task.state_ == swapped_task::fresh) {
      task.state_ = swapped_task::idle;
    } else if (task.state_ == address() && &task != current_) {
      task.state_ |= swapped_task::cancelled;
    } else if (task.state_ != swapped_task::idle && task.state_ != (address() | swapped_task::cancelled)) {
      detail::swap_misused("cancel was called for a swapped task that runs, or that is another dispatcher's");
    }
  }

  /// Drops one that is blocked, as if by longjmp: its destructors do not run. The policy must not return it.
  void discard(swapped_task& task) noexcept {
    if ((task.state_ & ~swapped_task::cancelled) != address() || &task == current_ || &task == unwound_) {
      detail::swap_misused("discard was called for a swapped task that is not blocked here");
    }
    task.sanitizer_.discard();
    give_back(task);
    end(task);
  }

  /// The swapped task that runs; null while none does, or one is being unwound.
  [[nodiscard]] swapped_task* current() noexcept { return current_ == &nobody_ ? nullptr : current_; }
  [[nodiscard]] const swap_statistics& statistics() const noexcept { return statistics_; }

 private:
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
    detail::running_dispatchers::begun(place_.top());
    main_sanitizer_.leave(loop_sanitizer_);
    arch::peer resumer;
    arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(this), 0, 0, 0};
    arch::transfer_into<&begin>(place_.top(), resumer, words);
    main_sanitizer_.arrive();
    detail::running_dispatchers::ended(place_.top());
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
  /// The dispatching loop. It belongs to the image of whoever blocks in it, and begins anew when the next is fresh.
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
    swapped_task& task = *std::exchange(current_, &nobody_);
    if ((task.capacity_ & swapped_task::owned) != 0) {
      give_back(task);
    }
    end(task);
  }
  /// It ended by an exception, which run rethrows, or by an unwind, or both.
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
      policy_.free(task.buffer_, task.capacity_ & ~swapped_task::owned);
      task.buffer_ = nullptr;
      task.capacity_ = 0;
    }
  }

  /// Takes the exceptions in flight and the values along, and sees to a larger buffer.
  PIRN_NOINLINE swap_error block_out_of_line() {
    swapped_task& self = *current_;
    if (current_ == &nobody_) {
      if (unwinding_) {
        return swap_error::unwinding;
      }
      detail::swap_misused("block was called outside of a swapped task");
    }
    const std::size_t size = place_.size_at(detail::swap_floor());
    if (size > self.capacity_) {
      // An image as large as that is none either.
      if (!place_.may_hold(detail::swap_floor(), stack_) || size > UINT32_MAX - detail::swap_block) {
        detail::swap_misused("block was called on another stack than the dispatcher's, a coroutine's for example");
      }
      auto* const larger = static_cast<char*>(policy_.allocate(size));
      if (larger == nullptr) {
        return swap_error::out_of_memory;
      }
      give_back(self);
      self.buffer_ = larger;
      self.capacity_ = static_cast<std::uint32_t>(size) | swapped_task::owned;
    }
    detail::taken_blocks blocks;
    if (detail::bodies_have_blocks()) {
      if (const swap_error why = take_along(blocks); why != swap_error::none) {
        return why;
      }
    }
    if (detail::maybe_in_flight()) {
      const detail::saved_exception_state own;
      swap_out_and_in(self, size);
    } else {
      swap_out_and_in(self, size);
    }
    detail::put_blocks(blocks);
    unwind_if_cancelled(self);
    return swap_error::none;
  }

  PIRN_ALWAYS_INLINE void unwind_if_cancelled(const swapped_task& self) {
    if ((self.state_ & swapped_task::cancelled) != 0) [[unlikely]] {
      unwound_ = std::exchange(current_, &nobody_);
      unwinding_->raise();
    }
  }

  /// Saves an image of `size` bytes, to which the caller's frame belongs, and lets the next one run. Returns when it is
  /// `self` again.
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

  /// The other side of the above, below both images: copies one out and the other in.
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
