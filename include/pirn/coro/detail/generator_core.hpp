// The top of a generator's stack, and how control passes between its producer and its consumer.
//
//        +----------------------+ top of the stack
//        | generator_control    | the body, its end, and how to resume it while no iterator exists
//        +----------------------+
//        | root frame           | of arch::prepare
//        | arch::producer_entry | holds the yield object: its side of the hot path
//        | body                 |
//        +----------------------+ sp
//
// Each side has three words of state on the hot path (the other side's peer), and they travel: the consumer's are in
// the iterator, the producer's in the yield object. These two are small local objects whose address no cold function
// gets. So compilers keep them in registers, also when the generator itself came from a function that is not inlined.
//
// A side that is switched away from, or has ended, holds a tagged peer (arch::is_tagged). So the test of misuse before
// a switch is one bit too, and is left out where the compiler has seen the test after the last one.
//
// A tagged resumer sends a `generator_message`: cancel, or the other consumer that a delegating generator lends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/stack_end.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/coro/detail/word_pair.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/exiting.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"
#include "pirn/stack/stack.hpp"
#include "pirn/stack/this_stack.hpp"

// A body that is not inlined into the entry function has the yield object in memory.
#if defined(__clang__) && __clang_major__ >= 15
#define PIRN_CALL_INLINED [[clang::always_inline]]
#else
#define PIRN_CALL_INLINED
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

using arch::peer;
using arch::undef_word;
using arch::word;

/// The state that one side has of the other.
struct generator_peer {
  arch::peer at = arch::ended_peer();
  [[no_unique_address]] sanitizer_peer sanitizer{};

  /// Takes the side away: this object then says that the side is away or has ended.
  PIRN_ALWAYS_INLINE generator_peer take() noexcept {
    const generator_peer side = *this;
    at.sp = arch::ended_peer().sp;  // one store, where this lies in memory
    return side;
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool tagged() const noexcept { return arch::is_tagged(at); }
  PIRN_ALWAYS_INLINE void resume(word& first, word& second) noexcept {
    sanitizer.leave();
    arch::resume_producer(at, first, second);
    sanitizer.arrive();
  }
  /// As `resume`, of a producer that has not begun and whose stack begins at `top`.
  template <class Run>
  PIRN_ALWAYS_INLINE void begin(void* top, word& first, word& second) noexcept {
    sanitizer.leave();
    arch::begin_producer<Run>(top, at, first, second);
    sanitizer.arrive();
  }
  PIRN_ALWAYS_INLINE void resume_tagged(word& first, word& second) noexcept {
    sanitizer.leave();
    arch::resume_producer<arch::peer_tag>(at, first, second);
    sanitizer.arrive();
  }
  PIRN_ALWAYS_INLINE void yield(word& first, word second) noexcept {
    sanitizer.leave();
    arch::yield_to_consumer(at, first, second);
    sanitizer.arrive();
  }
  PIRN_ALWAYS_INLINE void pass(word& first) noexcept {
    sanitizer.leave();
    arch::delegate_to(at, first);
    sanitizer.arrive();
  }
};

struct generator_message;

enum class generator_status : std::uint8_t {
  fresh = 0,  ///< the body has not begun
  suspended,  ///< at a yield, and `at` says where
  iterating,  ///< an iterator, or a generator that delegates to this one, holds what `at` held
  ended,
};

struct generator_control;

/// Facts and functions that all generators with one type of body and of allocator share.
struct generator_operations {
  /// Releases the stack, and destroys the body if it has not begun.
  void (*dispose)(generator_control& self) noexcept;
  /// Resumes `side`, that of a fresh one, by a direct jump.
  void (*enter)(generator_control& fresh, generator_peer& side, word& first, word& second) noexcept;
  /// Whether its stack is of the usual pool, and so has a guard and room for bodies to which it delegates.
  bool pooled = false;
  // The next two are for one on such a stack, before its body has begun; null if it cannot be moved.
  /// Runs the body on the running stack, with its elements to `consumer`; ends the generator before that. The stack
  /// belongs to `on`.
  void (*run_here)(generator_control& fresh, generator_control& on, generator_peer& consumer) = nullptr;
  /// Moves it to a stack with room for many generators that it delegates to; returns it unchanged if there is no such
  /// stack.
  generator_control* (*to_larger)(generator_control& fresh) noexcept = nullptr;
  /// Only of a generator whose stack has a word at its end.
  name_of_body body = nullptr;
};

/// A generator, apart from its type. Lies on the generator's own stack.
struct generator_control {
  generator_peer at{};
  generator_status status = generator_status::fresh;
  ending how = ending::returned;  ///< while the body runs, it may be `shows_consumer` instead
  std::exception_ptr exception{};
  /// The generator that delegates to this one, which is resumed at the end by that message instead of the consumer.
  generator_peer delegating{};
  generator_message* delegation = nullptr;
  generator_message* cancelled = nullptr;
  [[no_unique_address]] sanitizer_state sanitizer{};
  /// The lowest address of its stack, which ends at this object.
  void* limit = nullptr;
  taken_blocks blocks{};  ///< its open blocks, while it is suspended
  const generator_operations* operations = nullptr;
  /// Of its stack, or the size that its body was promised of a larger one.
  std::size_t size = 0;
  /// Number of delegating generators that wait for it, each on a separate stack.
  std::size_t waiting = 0;
  /// Where the body keeps the sp at which its consumer waits, if `how` is `shows_consumer`. So the end of a body, which
  /// sets `how` in any case, ends that too.
  const void* consumer_sp;
  static constexpr ending shows_consumer{3};
  [[nodiscard]] PIRN_ALWAYS_INLINE const void* shown_consumer() const noexcept {
    return how == shows_consumer ? consumer_sp : nullptr;
  }
};

/// The message of a tagged resumer. It lies in the resumer's frame, and is valid until the resumer is resumed.
struct generator_message {
  forced_unwind* cancel;  ///< unwind your stack; if null, the message is a delegation
  /// To the target of a delegation: the consumer to yield to, which must be returned here at the end. From a cancelled
  /// generator: the generator that delegates to it, which must be cancelled next.
  generator_peer side{};
  generator_control* target = nullptr;  ///< the target of the delegation
  generator_control* by = nullptr;      ///< the delegating generator
};

// ---- cold code: never gets a side in use, not even by value, since that may be passed by address ---------------

[[noreturn]] PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_misused(const generator_control* control) {
  if (control == nullptr) {
    throw std::logic_error("pirn: generator: it has been moved from");
  }
  if (control->status == generator_status::ended) {
    throw std::logic_error("pirn: generator: its iterator was advanced past the end");
  }
  throw std::logic_error(
      "pirn: generator: it is already running or being iterated: it allows one iterator at a time, and none in its own "
      "body");
}

[[noreturn]] PIRN_COLD PIRN_ENDS_PROCESS inline void generator_ran_off(const generator_control& control,
                                                                       word sp) noexcept {
  ran_off_stack("a generator", control.limit, static_cast<const char*>(control.limit) + control.size, sp,
                control.operations->body);
}

/// It yields from below the end of its stack, as far as the position shows: it may also yield in a body that it runs,
/// on another stack. Stacks of the C API and of other libraries are known to no table.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_below(const generator_control& control, word sp) noexcept {
  const stack running = &this_stack::bounds_if_linked != nullptr ? this_stack::bounds_if_linked() : stack();
  const bool elsewhere = running.size() != 0 && !running.contains(control.limit);
  if (!elsewhere && !frame_bodies::may_hold(sp, reinterpret_cast<word>(control.limit)) &&
      !runs_on_another_stack(control.limit, control.size)) {
    generator_ran_off(control, sp);
  }
}

[[noreturn]] PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_yield_misused() {
  throw std::logic_error("pirn: generator: yield was called while its generator is not running");
}

/// Called when the producer has ended: rethrows its exception.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_ended(generator_control* control) {
  if (control->how == ending::threw) {
    rethrow_of_body(std::exchange(control->exception, nullptr));
  }
  if (control->how == ending::unwound) {
    // Its body yielded as the generator that iterates it, which suspended both. The unwind of the two continues here.
    forced_unwind::of_thread()->raise();
  }
}

// The arguments are in the registers in which the switch has left them.
/// Handles a tagged resumer, given its peer: does not return if it cancels; otherwise `message` has the consumer to
/// yield to.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_on_tagged_resume(void* pc, void* sp, void* fp,
                                                                        generator_control& self,
                                                                        generator_message& message) {
  if (message.cancel != nullptr) {
    self.cancelled = &message;
    message.cancel->raise();
  }
  self.delegating.at = {pc, sp, fp};
}

/// Calls `use` with this stack, and with those of generators that delegate to it.
template <class Use>
PIRN_COLD std::invoke_result_t<Use, const body_stack&> generator_with_stacks(const generator_control& of, Use use,
                                                                             const body_stack* inner = nullptr) {
  const body_stack mine{reinterpret_cast<word>(of.limit), reinterpret_cast<word>(&of), inner};
  return of.delegation != nullptr ? generator_with_stacks(*of.delegation->by, use, &mine) : use(mine);
}
/// Detaches the open blocks on these stacks.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_take_blocks(generator_control& self) {
  self.blocks = generator_with_stacks(self, [](const body_stack& all) { return take_blocks(&all, stack_position()); });
}
/// As check_yields_here.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_check_yields_here(const generator_control& self) {
  generator_with_stacks(self, [](const body_stack& all) { check_yields_here(all, stack_position()); });
}
/// Yields to `consumer` and restores the detached blocks.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_yield_without(generator_control& self, generator_peer& consumer,
                                                                     word& first, word second) noexcept {
  consumer.yield(first, second);
  put_blocks(self.blocks);
}

using enter_generator = void (*)(generator_control& fresh, generator_peer& side, word& first, word& second) noexcept;
/// Returns the operation `enter` if the compiler sees that the generator has not begun, and which body it has; null
/// otherwise. gcc would see that too, but calls `enter`, which clang inlines.
PIRN_ALWAYS_INLINE enter_generator generator_known_fresh([[maybe_unused]] const generator_control& control) noexcept {
#if defined(__clang__)
  const generator_operations& known = *control.operations;
  const auto status = static_cast<int>(control.status);
  if (__builtin_constant_p(status) && status == 0 && __builtin_constant_p(static_cast<int>(known.pooled))) {
    return known.enter;
  }
#endif
  return nullptr;
}

/// Resumes a suspended generator so that it unwinds its stack. Returns when it has ended, or has left its place to a
/// generator that delegates to it.
PIRN_COLD inline void generator_cancel(generator_peer& side, generator_message& message) noexcept {
  constexpr int max_attempts = 1000;
  constexpr int max_ignored = 100;
  for (int attempts = 0; attempts < max_attempts; ++attempts) {
    word first = reinterpret_cast<word>(&message);
    word second = undef_word();
    // Code that the unwind runs, a destructor for example, and that yields, continues to its end: the element is
    // dropped.
    if (attempts != 0 && attempts <= max_ignored && std::uncaught_exceptions() != 0) {
      side.resume(first, second);
    } else {
      if (attempts != 0) {
        message.cancel->report("it yielded, and is unwound from there");
      }
      side.resume_tagged(first, second);
    }
    if (side.tagged()) {
      side.sanitizer.forget();
      return;
    }
  }
  forced_unwind::refuse("a generator that was destroyed", "it keeps yielding in handlers or destructors");
}

/// Ends a generator's stack and releases it.
PIRN_COLD inline void generator_destroy(generator_control& control) noexcept {
  if (control.status == generator_status::iterating) {
    if (platform::left_to_exit()) {
      return;
    }
    fail_contract("a generator was destroyed while it was running, or before its iterator");
  }
  if (control.status == generator_status::suspended) {
    control.status = generator_status::iterating;
    // The count belongs to the thread: it does not say which context the exception belongs to.
    const char* const name = std::uncaught_exceptions() == 0
                                 ? "a generator that was destroyed"
                                 : "a generator that was destroyed while an exception was in flight, perhaps that of a "
                                   "destructor in which it is suspended";
    generator_peer side = control.at;
    do {  // one turn for each generator in a chain of delegation, the innermost first
      forced_unwind cancel(name);
      generator_message message{&cancel};
      generator_cancel(side, message);
      side = message.side;
    } while (!side.tagged());
    control.exception = nullptr;
  }
  control.operations->dispose(control);
}

/// Releases a generator whose body has not ended.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline void generator_break_off(generator_control& control) noexcept {
  if (control.status == generator_status::fresh) {
    control.operations->dispose(control);
  } else {
    generator_destroy(control);
  }
}

// ---- the producer's side -----------------------------------------------------------------------------------------

/// The base of the yield object of a generator: the way to its consumer.
class generator_producer {
 public:
  generator_producer(const generator_producer&) = delete;
  generator_producer& operator=(const generator_producer&) = delete;

 protected:
  /// `message` is for when `first` is tagged, and `marked` says whether the end of the stack is.
  PIRN_ALWAYS_INLINE generator_producer(generator_control& self, const generator_peer& first, word message, bool marked)
      : self_(self), consumer_(first), marked_(marked) {
    if (consumer_.tagged()) [[unlikely]] {
      on_tagged_resume(message);
    }
    assume_untagged();
  }

  /// Passes two words to the consumer and returns when it wants the next element.
  PIRN_ALWAYS_INLINE void give(word first, word second) {
    if (bodies_have_blocks()) [[unlikely]] {
      first = give_without_blocks(first, second);
    } else {
      check_state();
      generator_peer consumer = consumer_.take();
      consumer.yield(first, second);
      consumer_ = consumer;
    }
    if (consumer_.tagged()) [[unlikely]] {
      on_tagged_resume(first);
    }
    assume_untagged();
  }

  /// Lets `inner` pass its elements to our consumer, at no cost for each, and returns when it has ended.
  PIRN_ALWAYS_INLINE void delegate(generator_control* inner) {
    if (inner == nullptr || inner->status == generator_status::iterating) {
      generator_misused(inner);
    }
    check_delegates_here();
    if (consumer_.tagged()) {
      generator_yield_misused();
    }
    if (inner->status == generator_status::ended) {
      return;
    }
    generator_message message{nullptr, consumer_.take(), inner, &self_};
    generator_peer side = inner->at;
    inner->status = generator_status::iterating;
    inner->delegation = &message;
    inner->waiting = self_.waiting + 1;
    word first = reinterpret_cast<word>(&message);
    side.pass(first);
    if (inner->how == ending::unwound) [[unlikely]] {
      consumer_ = side;
      on_tagged_resume(first);
    }
    side.sanitizer.forget();
    consumer_ = message.side;
    generator_ended(inner);
  }

  /// Delegates as `delegate` to a generator that its owner no longer needs. If it has not begun, and the running stack
  /// has as much room left as the stack of `inner`, it runs here, and its stack is released before; so a recursion has
  /// one stack for many levels. `inner` is null then, and another generator if it was moved.
  PIRN_ALWAYS_INLINE void delegate_last(generator_control*& inner) {
    check_delegates_here();
    if (inner != nullptr && inner->status == generator_status::fresh && inner->operations->run_here != nullptr &&
        self_.operations->pooled && !consumer_.tagged()) {
      const word limit = reinterpret_cast<word>(self_.limit);
      const word room = stack_position() - limit;
      if (room >= inner->size && room < reinterpret_cast<word>(&self_) - limit) {
        generator_peer consumer = consumer_.take();
        const struct restore_consumer {
          generator_peer &from, &to;
          PIRN_ALWAYS_INLINE ~restore_consumer() { to = from; }
        } back{consumer, consumer_};
        generator_control& fresh = *std::exchange(inner, nullptr);
        fresh.operations->run_here(fresh, self_, consumer);
        return;
      }
      // There may be many more levels. A few stacks of the usual size are available sooner than a large one.
      constexpr std::size_t few = 8;
      if (self_.waiting >= few) {
        inner = inner->operations->to_larger(*inner);
      }
    }
    delegate(inner);
  }

  /// The last switch, after `self_` has recorded how the body ended.
  [[noreturn]] PIRN_ALWAYS_INLINE void finish() noexcept {
    self_.status = generator_status::ended;
    if (self_.delegation != nullptr) [[unlikely]] {
      if (self_.how != ending::unwound) {
        self_.delegation->side = consumer_;
        self_.delegating.sanitizer.leave_for_good();
        arch::finish_to_delegator(self_.delegating.at);
      }
      self_.cancelled->side = self_.delegating;
    }
    consumer_.sanitizer.leave_for_good();
    arch::finish_to_consumer(consumer_.at);
  }

  /// The consumer's sp is in this object, whose address escapes: so it is there at each call that the compiler cannot
  /// see into, or tagged while another object holds the consumer.
  void show_consumer() noexcept {
    self_.consumer_sp = &consumer_.at.sp;
    self_.how = generator_control::shows_consumer;
  }

  template <class Control>
  friend struct generator_run;

  generator_control& self_;
  generator_peer consumer_;
  const bool marked_;  ///< a constant in a body that is inlined into its entry function

 private:
  /// Lets the compiler leave out the next test.
  PIRN_ALWAYS_INLINE void assume_untagged() noexcept {
    consumer_.at.sp = __builtin_assume_aligned(consumer_.at.sp, arch::peer_tag + 1);
  }
  /// As `give`, while bodies have blocks open. Returns the message of the resumer. A function, although it is inlined:
  /// for the same code in `give`, clang keeps the consumer in registers that calls preserve, and moves it to and from
  /// them at each element.
  PIRN_ALWAYS_INLINE word give_without_blocks(word first, word second) {
    generator_take_blocks(self_);  // first, since it refuses a call on another worker, beside which the body runs
    check_state();
    generator_peer copy = consumer_.take();
    generator_yield_without(self_, copy, first, second);
    consumer_ = copy;
    return first;
  }
  /// Refuses a delegation as `give` refuses a yield, before the consumer is looked at.
  PIRN_ALWAYS_INLINE void check_delegates_here() const {
    if (bodies_have_blocks()) [[unlikely]] {
      generator_check_yields_here(self_);
    }
  }
  PIRN_ALWAYS_INLINE void check_state() const {
    if (consumer_.tagged()) [[unlikely]] {
      generator_yield_misused();
    }
    // Tested here, and not in the consumer: its frame may lie below and have been overwritten.
    if (marked_) {
      const word limit = reinterpret_cast<word>(self_.limit);
      if (stack_end::overwritten(limit)) [[unlikely]] {
        generator_ran_off(self_, stack_position());
      }
      if (limit - stack_position() < near_below) [[unlikely]] {
        generator_below(self_, stack_position());
      }
    }
  }
  PIRN_ALWAYS_INLINE void on_tagged_resume(word raw) {
    auto& message = *reinterpret_cast<generator_message*>(raw);
    void* const sp = arch::untagged(consumer_.at).sp;
    consumer_.at.sp = sp;
    generator_on_tagged_resume(consumer_.at.pc, sp, consumer_.at.fp, self_, message);
    self_.delegating.sanitizer = consumer_.sanitizer;
    consumer_.at.pc = message.side.at.pc;
    consumer_.at.sp = arch::untagged(message.side.at).sp;  // it is not tagged, and now the compiler knows
    consumer_.at.fp = message.side.at.fp;
    consumer_.sanitizer = message.side.sanitizer;
  }
};

/// A generator with a body of this type, on memory that returns to this allocator (none if void).
template <class Yield, class Body, class Allocator>
struct generator_control_of : generator_control {
  using yield = Yield;
  using allocator = Allocator;
  template <class B>
  generator_control_of(B&& what, const stack& memory, Allocator* from)
      : body(std::forward<B>(what)), where(memory), owner(from) {}
  ~generator_control_of() {}

  static void give_back(generator_control& base) noexcept {
    auto& self = static_cast<generator_control_of&>(base);
    if (self.status == generator_status::fresh) {
      std::destroy_at(std::addressof(self.body));
    }
    const stack memory = self.where;
    Allocator* const from = self.owner;
    if constexpr (marks_end<Allocator>) {
      stack_end::check("a generator", memory.limit(), memory.top(), UINTPTR_MAX, body_name<Body>);
    }
    self.sanitizer.destroy();
    std::destroy_at(std::addressof(self));
    if constexpr (!maps_stacks<Allocator>) {
      frame_bodies::gone(memory.limit(), memory.top());
    }
    if constexpr (!std::is_void_v<Allocator>) {
      from->deallocate(memory);
    }
  }

  union {
    Body body;  // destroyed at the end of its run
  };
  stack where;
  Allocator* owner;
};

/// The first function on every generator's stack.
template <class Control>
struct generator_run {
  // Inlined: the yield object shares the frame of a body that is inlined too.
  // `message` is the beginning generator, or a message that names it if another generator delegates to it.
  [[noreturn]] PIRN_ALWAYS_INLINE static void run(const peer& from, word message) {
    auto& self = static_cast<Control&>(*(arch::is_tagged(from) ? reinterpret_cast<generator_message*>(message)->target
                                                               : reinterpret_cast<generator_control*>(message)));
    generator_peer side{from};
    side.sanitizer.arrive();
    typename Control::yield yield(self, side, message, marks_end<typename Control::allocator>);
    std::exception_ptr thrown;
    self.how = run_unwindable([&]() __attribute__((always_inline)) { PIRN_CALL_INLINED self.body(yield); }, thrown);
    if (thrown) [[unlikely]] {
      self.exception = std::move(thrown);
    }
    std::destroy_at(std::addressof(self.body));
    if constexpr (marks_end<typename Control::allocator>) {
      const word limit = reinterpret_cast<word>(self.limit);
      if (stack_end::overwritten(limit) ||
          stack_end::overwritten_below<margin_below<typename Control::allocator>>(limit)) [[unlikely]] {
        generator_ran_off(self, stack_position());
      }
    }
    yield.finish();
  }

  /// See `generator_operations::enter`.
  static void enter(generator_control& fresh, generator_peer& side, word& first, word& second) noexcept {
    side.begin<generator_run>(&fresh, first, second);
  }

  /// See `generator_operations::run_here`.
  PIRN_NOINLINE static void run_here(generator_control& fresh, generator_control& on, generator_peer& consumer) {
    using body_type = decltype(Control::body);
    body_type body(std::move(static_cast<Control&>(fresh).body));
    fresh.operations->dispose(fresh);
    typename Control::yield yield(on, consumer, undef_word(), false);
    const struct given_back {
      typename Control::yield& from;
      generator_peer& to;
      generator_control& on;
      const void* shown;
      PIRN_ALWAYS_INLINE ~given_back() {
        if (on.shown_consumer() != shown) [[unlikely]] {
          on.how = shown != nullptr ? on.how : ending::returned;
          on.consumer_sp = shown;
        }
        to = from.consumer_;
      }
    } back{yield, consumer, on, on.shown_consumer()};
    body(yield);
  }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
