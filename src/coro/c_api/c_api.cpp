// Implements the C API on the context layer alone.
//
// It is linked into programs without the C++ runtime, so nothing here may need that: no exceptions, no run-time types,
// no containers, no thread-safe statics. For this reason stacks come from mmap, one mapping each, instead of from
// guarded_pool, which is built on the standard library. A program that creates coroutines at a high rate keeps a
// pirn_stack and reuses it, or resets the coroutine. And forced_unwind is based on the C++ runtime's exceptions; here
// the unwinder of libgcc is called directly, and the runtime is used only where the program has one.
//
//      +--------------------------+ end of the mapping, or of the caller's memory
//      | struct pirn_stack        |
//      | struct pirn_coroutine    | while one is on it
//      | frames                   |
//      |   |                      |
//      |   v                      |
//      +--------------------------+ limit
//      | guard                    | of stacks made by mmap
//      +--------------------------+
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <unwind.h>

#include "coro/c_api/c_stack.hpp"
#include "coro/c_api/locals.hpp"
#include "pirn/context/arch.hpp"
#include "pirn/context/detail/c_blocks.hpp"
#include "pirn/context/detail/call_sites.hpp"
#include "pirn/context/detail/per_fiber.hpp"
#include "pirn/context/detail/stack_end.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/pirn.h"

namespace arch = pirn::arch;
using pirn_c::end_of;

namespace {

/// The C++ runtime's record of exceptions in flight per OS thread, where the program has that runtime.
struct exceptions {
  void* caught;
  unsigned uncaught;
};
using terminate_handler = void (*)();
extern "C" exceptions* pirn_c_exceptions() noexcept asm("__cxa_get_globals") __attribute__((weak));
extern "C" void pirn_c_end_catch() asm("__cxa_end_catch") __attribute__((weak));
extern "C" terminate_handler pirn_c_set_terminate(terminate_handler handler) noexcept asm("_ZSt13set_terminatePFvvE")
    __attribute__((weak));

}  // namespace

struct pirn_coroutine {
  arch::peer to{};                  // its state while it is suspended; else pc is null
  arch::peer back{};                // its resumer's while it is running
  pirn_coroutine* outer = nullptr;  // the coroutine that was running when it was resumed
  exceptions in_flight{};           // its exceptions, while it is not running
  pirn_function body = nullptr;
  void* user = nullptr;
  pirn_stack* stack = nullptr;
  void* marked_limit = nullptr;  // of the caller's memory, which has a word there instead of a guard
  bool owns_stack = false;
  // While `to` is null: whether it is running, and then whether for the last time.
  bool running = false;
  bool unwinding_now = false;
  [[no_unique_address]] pirn::sanitizer_state sanitizer{};
  [[no_unique_address]] pirn::sanitizer_peer to_sanitizer{};
  [[no_unique_address]] pirn::sanitizer_peer back_sanitizer{};
  _Unwind_Exception unwinding{};
  void* set_aside = nullptr;                // exceptions that it had caught when the unwind began
  _Unwind_Exception* on_its_way = nullptr;  // the end of the thread, which its last switch takes to its resumer
  unsigned uncaught = 0;                    // as of the last frame that the unwinder looked at
  bool diverted = false;                    // a catch block threw another exception instead of rethrowing the unwind
  pirn_c::locals variables;
};

namespace {

// For code outside of fibers.
__attribute__((tls_model("initial-exec"))) thread_local void* current_of_thread = nullptr;

/// The place of the running coroutine. A resumer finds the same place when it is back, since it is the same fiber or,
/// outside of fibers, on the same thread.
PIRN_ALWAYS_INLINE void*& current_place(pirn::detail::slot_access how) noexcept {
  if (&pirn::detail::c_coroutine_of_fiber != nullptr) {
    if (void** const place = pirn::detail::c_coroutine_of_fiber(how); place != nullptr) {
      return *place;
    }
  }
  return current_of_thread;
}
PIRN_ALWAYS_INLINE pirn_coroutine* current() noexcept {
  return static_cast<pirn_coroutine*>(current_place(pirn::detail::slot_access::read));
}

static_assert(sizeof(pirn_stack) + sizeof(pirn_coroutine) + 80 + 6144 <= PIRN_STACK_MIN, "an unwind needs the rest");

bool is_on_stack_of(const pirn_coroutine& self, const void* position) noexcept {
  return position >= static_cast<const void*>(self.stack->limit) &&
         position <= static_cast<const void*>(end_of(self.stack));
}

/// At each return from the coroutine: checks whether it has overflowed the caller's memory.
PIRN_ALWAYS_INLINE void check_end(const pirn_coroutine& self) noexcept {
  if (self.marked_limit != nullptr) {
    pirn::detail::stack_end::check("a pirn_coroutine", self.marked_limit, end_of(self.stack));
  }
}

/// Ends the variables of a coroutine, on its stack. It yields no more.
PIRN_COLD void end_variables(pirn_coroutine& self) noexcept {
  self.unwinding_now = true;
  self.variables.end();
  self.unwinding_now = false;
}

/// The last switch of a coroutine. Inlined: a call without its return would make the resumer's return mispredict.
[[noreturn]] PIRN_ALWAYS_INLINE void leave(pirn_coroutine& self, void* result) noexcept {
  if (self.variables.any()) [[unlikely]] {
    end_variables(self);
  }
  arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(result), 0, 0, 0};
  self.back_sanitizer.leave_for_good();
  arch::transfer_last(self.back, words);
}

[[noreturn]] PIRN_NONE PIRN_NOINLINE PIRN_CALLS_C void run(void* pc, void* sp, void* fp, arch::word first,
                                                           arch::word address, arch::word, arch::word) {
  // Encoded as an offset of four bytes.
  asm volatile(PIRN_CFI(".cfi_personality 0x1b, pirn_c_body_left"));
  auto& self = *reinterpret_cast<pirn_coroutine*>(address);
  self.back = {pc, sp, fp};
  self.back_sanitizer = {};
  self.back_sanitizer.arrive();
  leave(self, self.body(&self, reinterpret_cast<void*>(first)));
}

void prepare(pirn_coroutine& self, pirn_function body, void* user) noexcept {
  self.body = body;
  self.user = user;
  self.in_flight = {};
  self.to = arch::prepare(&self, static_cast<arch::transfer_entry>(&run));
  self.sanitizer.create(self.stack->limit, pirn_stack_size(self.stack), "pirn_coroutine");
  self.to_sanitizer = pirn::sanitizer_peer(self.sanitizer);
}

// ---- unwinding ----------------------------------------------------------------------------------------------------

/// Prints a line on stderr without printf, which needs little of a stack that may be small.
PIRN_COLD void say(const char* what) noexcept {
  std::fputs("pirn: a pirn_coroutine that is being destroyed ", stderr);
  std::fputs(what, stderr);
  std::fputc('\n', stderr);
}
[[noreturn]] PIRN_COLD void refuse(const char* why) noexcept {
  say(why);
  std::abort();
}
[[noreturn]] PIRN_COLD void end_by(const char* why) noexcept {
  std::fputs("pirn: ", stderr);
  std::fputs(why, stderr);
  std::fputc('\n', stderr);
  std::abort();
}

terminate_handler earlier_terminate = nullptr;
pirn::platform::atomic<bool> terminate_watched{false};

// The runtime's default handler would name a type, which a foreign exception does not have.
void terminating() {
  if (pirn_coroutine* const self = current(); self != nullptr && self->unwinding_now) {
    // The runtime's header of a foreign exception ends where the unwinder's does.
    const auto caught = reinterpret_cast<std::uintptr_t>(pirn_c_exceptions()->caught);
    const auto ours = reinterpret_cast<std::uintptr_t>(&self->unwinding);
    constexpr std::uintptr_t largest_header = 512;
    if (caught == 0 || ours + sizeof self->unwinding - caught < largest_header) {
      refuse("is suspended under noexcept, in a destructor for example, or ended the program itself");
    }
    say("threw another exception, which its body does not catch");
  }
  if (earlier_terminate != nullptr) {
    earlier_terminate();
  }
  std::abort();
}

_Unwind_Reason_Code step(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context*,
                         void* of) {
  auto& self = *static_cast<pirn_coroutine*>(of);
  if ((actions & _UA_END_OF_STACK) != 0) {
    leave(self, nullptr);
  }
  if (&pirn_c_exceptions != nullptr) {
    self.uncaught = pirn_c_exceptions()->uncaught = 1;  // regardless of how often it was rethrown
  }
  return _URC_NO_REASON;
}

/// Unwinds up to the coroutine's last switch. A frame without tables ends the unwind: the frames above it have no known
/// cleanup.
[[noreturn]] void unwind_on(pirn_coroutine& self) noexcept(false) {
  _Unwind_ForcedUnwind(&self.unwinding, reinterpret_cast<_Unwind_Stop_Fn>(&step), &self);
  leave(self, nullptr);
}

/// Called when a C++ catch block ended without rethrowing: the unwind continues regardless.
void swallowed(_Unwind_Reason_Code, _Unwind_Exception* exception) {
  char* const at = reinterpret_cast<char*>(exception) - offsetof(pirn_coroutine, unwinding);
  auto& self = *reinterpret_cast<pirn_coroutine*>(at);
  exceptions& globals = *pirn_c_exceptions();
  globals.caught = nullptr;
  if (globals.uncaught != self.uncaught) {
    say("threw another exception instead of rethrowing the unwind");
    --globals.uncaught;  // that exception counts as handled: when its handler ends, nothing is in flight any more
    self.uncaught = 0;
    self.diverted = true;
    return;
  }
  unwind_on(self);
}

[[noreturn]] PIRN_COLD void unwind(pirn_coroutine& self) noexcept(false) {
  if (&pirn_c_exceptions != nullptr) {
    exceptions& globals = *pirn_c_exceptions();
    if (globals.uncaught != 0) {
      refuse("is suspended in a destructor that is itself run by an exception");
    }
    if (pirn::detail::noexcept_caller() != 0) {
      refuse("is suspended under noexcept, in a destructor for example");
    }
    if (&pirn_c_set_terminate != nullptr && !terminate_watched.exchange(true)) {
      earlier_terminate = pirn_c_set_terminate(&terminating);
    }
    // The runtime refuses to catch a foreign exception beside others.
    self.set_aside = globals.caught;
    globals = {nullptr, 1};  // scope guards see a failure
  }
  self.unwinding = {};
  self.unwinding.exception_cleanup = &swallowed;
  unwind_on(self);
}

/// The personality of `run`, which the unwinder calls on the stack that it unwinds. The end of the thread
/// (pthread_exit, pthread_cancel) has left all frames of the body behind, and continues at the caller that resumed or
/// destroyed it.
extern "C" __attribute__((used, visibility("hidden"))) _Unwind_Reason_Code pirn_c_body_left(int, _Unwind_Action actions,
                                                                                            _Unwind_Exception_Class,
                                                                                            _Unwind_Exception* what,
                                                                                            _Unwind_Context*) {
  if ((actions & _UA_FORCE_UNWIND) == 0) {
    return _URC_CONTINUE_UNWIND;  // no frame catches an exception here
  }
  pirn_coroutine* const self = current();
  if (self == nullptr || !is_on_stack_of(*self, __builtin_frame_address(0))) {
    end_by(
        "the body of a pirn_coroutine was left by pthread_exit or pthread_cancel while another coroutine, or none, "
        "counts as running: a continuation that was suspended in it has been resumed elsewhere");
  }
  if (what == &self->unwinding) {
    return _URC_CONTINUE_UNWIND;  // `step` ends it
  }
  self->on_its_way = what;
  leave(*self, nullptr);
}

/// Continues the end of the thread on the caller's stack.
[[noreturn]] PIRN_COLD void end_thread(_Unwind_Exception* what) noexcept(false) {
  // The unwinder keeps the state of a forced unwind in these fields.
  _Unwind_ForcedUnwind(what, reinterpret_cast<_Unwind_Stop_Fn>(what->private_1),
                       reinterpret_cast<void*>(what->private_2));
  end_by(
      "the end of a thread, by pthread_exit or pthread_cancel in the body of a pirn_coroutine, finds no frame from "
      "which it can continue");
}

/// Ends a coroutine that has begun and is suspended at `to`.
PIRN_COLD void unwind_from_outside(pirn_coroutine& self, arch::peer to) noexcept {
  exceptions in_flight{};
  if (&pirn_c_exceptions != nullptr) {
    in_flight = *pirn_c_exceptions();
    *pirn_c_exceptions() = self.in_flight;
  }
  void*& current = current_place(pirn::detail::slot_access::write);
  self.outer = static_cast<pirn_coroutine*>(current);
  self.running = self.unwinding_now = true;
  self.diverted = false;
  self.set_aside = nullptr;
  current = &self;
  arch::word words[arch::value_words] = {};
  pirn::sanitizer_peer sanitizer = self.to_sanitizer;
  sanitizer.leave();
  arch::transfer_tagged(to, words);
  sanitizer.arrive();
  sanitizer.forget();
  check_end(self);
  current = self.outer;
  self.running = self.unwinding_now = false;
  if (&pirn_c_exceptions != nullptr) {
    *pirn_c_exceptions() = {self.set_aside, 0};
    while (pirn_c_exceptions()->caught != nullptr) {
      pirn_c_end_catch();
    }
    *pirn_c_exceptions() = in_flight;
  }
}

/// Ends a coroutine that is not running. Returns the end of the thread that must continue when it is released, or null.
[[nodiscard]] _Unwind_Exception* end(pirn_coroutine& self) noexcept {
  const arch::peer to = self.to;
  self.to.pc = nullptr;
  self.on_its_way = nullptr;
  if (to.pc != nullptr && self.back.pc != nullptr) {
    unwind_from_outside(self, to);
  }
  self.back.pc = nullptr;
  self.sanitizer.destroy();
  return self.on_its_way;
}

}  // namespace

// ---- what is exported ---------------------------------------------------------------------------------------------

int pirn_create(pirn_coroutine** result, pirn_stack* stack, pirn_function body, void* user) {
  if (result == nullptr || body == nullptr) {
    return -EINVAL;
  }
  const bool owns_stack = stack == nullptr;
  if (owns_stack) {
    if (const int problem = pirn_stack_create(&stack, 0); problem != 0) {
      return problem;
    }
  } else if (stack->taken) {
    return -EBUSY;
  }
  stack->taken = true;
  constexpr std::uintptr_t alignment = 64;  // the fields of a switch span as few cache lines as possible
  const auto end_of_stack = reinterpret_cast<std::uintptr_t>(end_of(stack));
  auto* const self =
      new (reinterpret_cast<void*>((end_of_stack - sizeof(pirn_coroutine)) & ~(alignment - 1))) pirn_coroutine;
  self->stack = stack;
  self->owns_stack = owns_stack;
  if (stack->mapping == nullptr) {
    self->marked_limit = stack->limit;
    pirn::detail::stack_end::put(stack->limit);
  }
  prepare(*self, body, user);
  *result = self;
  return 0;
}

int pirn_destroy(pirn_coroutine* coroutine) {
  if (coroutine == nullptr) {
    return 0;
  }
  if (coroutine->running) {
    return -EBUSY;
  }
  _Unwind_Exception* const on_its_way = end(*coroutine);
  pirn_stack* const stack = coroutine->stack;
  stack->taken = false;
  const int result = coroutine->owns_stack ? pirn_stack_destroy(stack) : 0;
  if (on_its_way != nullptr) {
    end_thread(on_its_way);
  }
  return result;
}

int pirn_reset(pirn_coroutine* coroutine, pirn_function body, void* user) {
  if (coroutine == nullptr || body == nullptr) {
    return -EINVAL;
  }
  if (coroutine->running) {
    return -EBUSY;
  }
  if (_Unwind_Exception* const on_its_way = end(*coroutine); on_its_way != nullptr) {
    end_thread(on_its_way);
  }
  prepare(*coroutine, body, user);
  return 0;
}

PIRN_NOINLINE int pirn_resume(pirn_coroutine* coroutine, void* in, void** out) {
  if (coroutine == nullptr) {
    return -EINVAL;
  }
  arch::peer to = coroutine->to;
  if (to.pc == nullptr) {
    return coroutine->running ? -EBUSY : -ESRCH;
  }
  coroutine->to.pc = nullptr;
  coroutine->running = true;
  void*& current = current_place(pirn::detail::slot_access::write);
  coroutine->outer = static_cast<pirn_coroutine*>(current);
  current = coroutine;
  exceptions* globals = &pirn_c_exceptions != nullptr ? pirn_c_exceptions() : nullptr;
  exceptions in_flight{};
  if (globals != nullptr) {
    in_flight = *globals;
    *globals = coroutine->in_flight;
  }
  arch::word words[arch::value_words];
  words[0] = reinterpret_cast<arch::word>(in);
  words[1] = reinterpret_cast<arch::word>(coroutine);
  words[2] = words[3] = 0;
  pirn::sanitizer_peer sanitizer = coroutine->to_sanitizer;
  sanitizer.leave();
  arch::transfer(to, words);
  sanitizer.arrive();
  check_end(*coroutine);
  if (globals != nullptr) {
    globals = pirn_c_exceptions();  // a fiber may have moved to another thread in between
    coroutine->in_flight = *globals;
    *globals = in_flight;
  }
  current = coroutine->outer;
  coroutine->running = false;
  if (arch::is_tagged(to)) {
    sanitizer.forget();
    if (coroutine->on_its_way != nullptr) [[unlikely]] {
      end_thread(coroutine->on_its_way);
    }
    if (out != nullptr) {
      *out = reinterpret_cast<void*>(words[0]);
    }
    return PIRN_ENDED;
  }
  coroutine->to = to;
  coroutine->to_sanitizer = sanitizer;
  if (out != nullptr) {
    *out = reinterpret_cast<void*>(words[0]);
  }
  return PIRN_YIELDED;
}

PIRN_NOINLINE int pirn_yield(pirn_coroutine* self, void* out, void** in) {
  if (self == nullptr) {
    return -EINVAL;
  }
  pirn_coroutine* const running = current();
  if (running != self || self->unwinding_now) {
    if (running == self && self->diverted) {
      refuse("threw another exception instead of rethrowing the unwind, caught that exception, and yields");
    }
    return -EPERM;
  }
  // If a coroutine of another kind runs inside it, a switch here would suspend only that one.
  if (!is_on_stack_of(*self, __builtin_frame_address(0))) [[unlikely]] {
    return -EPERM;
  }
  pirn::detail::blocks_of_c blocks;
  if (&pirn::detail::take_blocks_of_c != nullptr &&
      !pirn::detail::take_blocks_of_c(self->stack->limit, end_of(self->stack), blocks)) {
    return -ENOMEM;
  }
  arch::peer back = self->back;
  arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(out), 0, 0, 0};
  pirn::sanitizer_peer sanitizer = self->back_sanitizer;
  sanitizer.leave();
  arch::transfer(back, words);
  sanitizer.arrive();
  self->back_sanitizer = sanitizer;
  if (&pirn::detail::put_blocks_of_c != nullptr) {
    pirn::detail::put_blocks_of_c(blocks);
  }
  if (arch::is_tagged(back)) {
    self->back = arch::untagged(back);
    unwind(*self);
  }
  self->back = back;
  if (in != nullptr) {
    *in = reinterpret_cast<void*>(words[0]);
  }
  return 0;
}

PIRN_NOINLINE pirn_coroutine* pirn_self() {
  asm volatile("" ::: "memory");
  return current();
}

int pirn_done(const pirn_coroutine* coroutine) {
  return coroutine == nullptr || (coroutine->to.pc == nullptr && !coroutine->running) ? 1 : 0;
}

void* pirn_user(const pirn_coroutine* coroutine) { return coroutine == nullptr ? nullptr : coroutine->user; }

void pirn_set_user(pirn_coroutine* coroutine, void* user) {
  if (coroutine != nullptr) {
    coroutine->user = user;
  }
}

int pirn_local_create(pirn_local* result, void (*end)(void* value)) {
  if (result == nullptr) {
    return -EINVAL;
  }
  const int made = pirn_c::local_keys::make(end);
  if (made < 0) {
    return made;
  }
  *result = made;
  return 0;
}

void* pirn_local_get(pirn_local variable) {
  const pirn_coroutine* const self = current();
  return self == nullptr ? nullptr : self->variables.get(variable);
}

int pirn_local_set(pirn_local variable, void* value) {
  if (!pirn_c::local_keys::has(variable)) {
    return -EINVAL;
  }
  pirn_coroutine* const self = current();
  return self == nullptr ? -EPERM : self->variables.set(variable, value);
}
