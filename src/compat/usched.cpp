// Implements compat/usched.h, with the stack layout of swap_image.hpp. As in usched, a thread's stack is in its buffer
// before s_next is called, so s_next may do anything with the thread.
//
//      u_stack                                                   u_stack + u_len
//      +---------------------------------------+---------+--------+
//      | image, from u_top up to u_bottom      | resting |        |
//      +---------------------------------------+---------+--------+
//                                              u_cont
//
// The end of the OS thread (pthread_exit, pthread_cancel) unwinds the frames of a thread, or of s_next. The personality
// of the frame below which they lie takes it to usched_run, which continues it in its caller.
#include "usched.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include <unwind.h>

#include "compat/usched_locals.hpp"
#include "compat/usched_preempt.hpp"
#include "compat/usched_run_all.hpp"
#include "pirn/context/arch.hpp"
#include "pirn/context/detail/call_sites.hpp"
#include "pirn/context/detail/per_fiber.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/coro/detail/swap_image.hpp"
#include "pirn/coro/detail/swap_sanitizer.hpp"
#include "pirn/coro/expert/swap_shrink.hpp"
#include "pirn/stack/detail/image_copy.hpp"

namespace arch = pirn::arch;

// Defined by the program, if it has one of these sanitizers.
extern "C" {
void __asan_init() __attribute__((weak));
void __tsan_init() __attribute__((weak));
}

using pirn::detail::copy_image;
using pirn::detail::native_stack;
using pirn::detail::swap_floor;
using pirn::detail::swap_place;
using pirn::detail::swap_sanitizer;

namespace {

/// The history of a large buffer, for make_room; kept in the buffer from one block to the next.
struct buffer_history {
  std::uint32_t allocated = 0;  // by s_alloc, so that it may be exchanged for a smaller one
  std::uint32_t found = 0;      // blocks in a row that found it too large
};

/// The object that u_cont points to.
struct resting {
  arch::context where;
  buffer_history buffer;
  [[no_unique_address]] swap_sanitizer sanitizer;
};

/// The object that s_buf points to, in the frame of usched_run.
struct dispatcher {
  usched* of = nullptr;
  swap_place place;
  arch::context run;  // usched_run
  [[no_unique_address]] swap_sanitizer run_sanitizer;
  [[no_unique_address]] swap_sanitizer loop_sanitizer;
  [[no_unique_address]] swap_sanitizer choosing;  // s_next, when a thread has blocked
  _Unwind_Exception* end_of_native = nullptr;     // the end of the OS thread, when a thread or s_next was left by it
  bool runs_all = false;                          // that waits until s_next returns null

  /// The word that holds the dispatcher while its threads run, above their frames, which end at `end`. It is found so
  /// even if the running thread has been freed, or has begun in an earlier usched_run.
  static dispatcher*& above(const char* end) noexcept {
    swap_place place;
    place.choose_end(const_cast<char*>(end));
    return *static_cast<dispatcher**>(place.top());
  }
};

/// The running thread, or the dispatcher that chooses one.
struct turn {
  /// The thread, a ustack. While `end` is null, it is the dispatcher whose s_next chooses, or null.
  void* of = nullptr;
  /// The end of its frames, below the frame of usched_run; null while no thread runs. A caller above it on the native
  /// stack has left usched_run by longjmp, and the thread may no longer exist.
  const char* end = nullptr;

  [[nodiscard]] PIRN_ALWAYS_INLINE ustack* thread() const noexcept { return static_cast<ustack*>(of); }
};
// For code outside of fibers. Read by functions that are not inlined into the blocking code: its address is the same on
// both sides of a block, which stays on one OS thread there.
__attribute__((tls_model("initial-exec"))) thread_local turn turn_of_thread;

/// For a program with fibers: each fiber has a separate value. It may suspend in s_next and in a thread, and other
/// fibers of its worker call usched_run meanwhile. Then it may be on another OS thread.
PIRN_NOINLINE turn fiber_or_thread() noexcept {
  asm volatile("");
  void* const* const own = pirn::detail::usched_of_fiber(pirn::detail::slot_access::read);
  return own != nullptr ? turn{own[0], static_cast<const char*>(own[1])} : turn_of_thread;
}
PIRN_NOINLINE void run_in_fiber_or_thread(void* of, const char* end) noexcept {
  asm volatile("");
  if (void** const own = pirn::detail::usched_of_fiber(pirn::detail::slot_access::write); own != nullptr) {
    own[0] = of;
    own[1] = const_cast<char*>(end);
  } else {
    turn_of_thread = {of, end};
  }
}
PIRN_ALWAYS_INLINE turn current() noexcept {
  return &pirn::detail::usched_of_fiber == nullptr ? turn_of_thread : fiber_or_thread();
}
PIRN_ALWAYS_INLINE void run_as(void* of, const void* end) noexcept {
  if (&pirn::detail::usched_of_fiber == nullptr) {
    turn_of_thread = {of, static_cast<const char*>(end)};
  } else {
    run_in_fiber_or_thread(of, static_cast<const char*>(end));
  }
}

// The result of the last lookup.
__attribute__((tls_model("initial-exec"))) thread_local native_stack stack_of_thread;

[[noreturn]] PIRN_COLD void refuse(const char* why) noexcept {
  std::fputs("usched (pirn): ", stderr);
  std::fputs(why, stderr);
  std::fputc('\n', stderr);
  std::abort();
}

/// Forgets a thread that was left by longjmp: the caller's sp, `floor`, is above its frames.
PIRN_COLD void forget_if_left(const char* floor) noexcept {
  if (current().end != nullptr && native_stack::of_thread().holds(floor)) {
    run_as(nullptr, nullptr);
  }
}

dispatcher& dispatcher_of(const ustack& thread) noexcept { return *static_cast<dispatcher*>(thread.u_sched->s_buf); }
resting& rest_of(const ustack& thread) noexcept { return *static_cast<resting*>(thread.u_cont); }
/// The image size of a thread that has begun. u_top is null while it is not blocked.
std::size_t image_size(const ustack& thread) noexcept {
  if (thread.u_top == nullptr) [[unlikely]] {
    refuse("s_next returned a thread that has ended");
  }
  return static_cast<std::size_t>(static_cast<char*>(thread.u_bottom) - static_cast<char*>(thread.u_top));
}

// Encoded as an offset of four bytes. In each function whose frame is the outermost one of threads or of s_next.
#define PIRN_USCHED_PERSONALITY() asm volatile(PIRN_CFI(".cfi_personality 0x1b, pirn_usched_left"))

PIRN_UNSANITIZED PIRN_CALLS_C PIRN_ALWAYS_INLINE ustack* choose(const dispatcher& self) {
  ustack* const next = self.of->s_next(self.of);
  if (next != nullptr && next->u_sched != self.of) [[unlikely]] {
    refuse("s_next returned a thread of another dispatcher");
  }
  return next;
}

/// The caller's sp is below the image.
[[noreturn]] PIRN_UNSANITIZED PIRN_ALWAYS_INLINE void resume(ustack& thread) noexcept {
  const std::size_t size = image_size(thread);
  run_as(&thread, thread.u_bottom);
  copy_image(std::exchange(thread.u_top, nullptr), thread.u_stack, size);
  arch::switch_last(rest_of(thread).where, 0, 0);
}
[[noreturn]] PIRN_UNSANITIZED PIRN_NONE void resume_from_below(void* /*pc*/, void* /*sp*/, void* /*fp*/,
                                                               arch::word thread, arch::word, arch::word, arch::word) {
  resume(*reinterpret_cast<ustack*>(thread));
}
/// Calls `entry` on the stack that ends at `top`; the caller's frames are no longer needed.
template <arch::transfer_entry entry>
[[noreturn]] PIRN_UNSANITIZED PIRN_ALWAYS_INLINE void enter_for_good(void* top, void* first, void* second) noexcept {
  arch::peer nobody;
  arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(first), reinterpret_cast<arch::word>(second), 0,
                                         0};
  arch::transfer_into<entry>(top, nobody, words);
  __builtin_unreachable();
}

/// The dispatching loop: belongs to the image of the thread that blocks in it.
[[noreturn]] PIRN_UNSANITIZED PIRN_CALLS_C PIRN_ALWAYS_INLINE void loop(dispatcher& first, ustack* next) {
  dispatcher* self = &first;
  self->loop_sanitizer.arrive();
  for (;; next = nullptr) {
    if (next == nullptr) {
      next = choose(*self);
    }
    if (next == nullptr) {
      self->loop_sanitizer.leave_for_good(self->run_sanitizer);
      arch::switch_last(self->run, 0, 0);
    }
    if (next->u_bottom != nullptr) {
      const std::size_t size = image_size(*next);
      self->loop_sanitizer.leave_for_good(rest_of(*next).sanitizer);
      swap_sanitizer::clear(next->u_top, size);
      enter_for_good<&resume_from_below>(self->place.below(size, swap_floor()), next, nullptr);
    }
    next->u_bottom = self->place.end();
    run_as(next, next->u_bottom);
    next->u_f(next->u_arg);  // which may have freed it
    // A later usched_run, if the thread has blocked meanwhile.
    const turn ended = current();
    self = dispatcher::above(ended.end);
    run_as(self, nullptr);
    pirn_usched::end_values_if_any(ended.of);
  }
}
[[noreturn]] PIRN_UNSANITIZED PIRN_NONE void begin(void* pc, void* sp, void* fp, arch::word here, arch::word,
                                                   arch::word, arch::word) {
  PIRN_USCHED_PERSONALITY();
  dispatcher& self = *reinterpret_cast<dispatcher*>(here);
  self.run = {pc, sp, fp};
  dispatcher::above(self.place.end()) = &self;
  loop(self, nullptr);
}
[[noreturn]] PIRN_UNSANITIZED PIRN_NONE void begin_anew(void* /*pc*/, void* /*sp*/, void* /*fp*/, arch::word here,
                                                        arch::word next, arch::word, arch::word) {
  PIRN_USCHED_PERSONALITY();
  loop(*reinterpret_cast<dispatcher*>(here), reinterpret_cast<ustack*>(next));
}

/// The other side of ustack_block, below the image that it saves.
[[noreturn]] PIRN_NONE PIRN_UNSANITIZED_INLINE void leave(void* pc, void* sp, void* fp, arch::word blocked,
                                                          arch::word size, arch::word, arch::word) {
  PIRN_USCHED_PERSONALITY();
  ustack& thread = *reinterpret_cast<ustack*>(blocked);
  dispatcher& self = dispatcher_of(thread);
  thread.u_top = self.place.end() - size;
  swap_sanitizer::clear(thread.u_top, size);
  copy_image(thread.u_stack, thread.u_top, size);
  resting& rest = rest_of(thread);
  rest.where = {pc, sp, fp};
  rest.sanitizer.leave(self.choosing);
  self.choosing.arrive();
  run_as(&self, nullptr);
  ustack* const next = choose(self);  // which may have freed the thread
  if (next != nullptr && next->u_bottom != nullptr) [[likely]] {
    self.choosing.leave(rest_of(*next).sanitizer);
    if (image_size(*next) > size) [[unlikely]] {
      enter_for_good<&resume_from_below>(self.place.below(image_size(*next)), next, nullptr);
    }
    resume(*next);
  }
  if (next == nullptr) {
    self.choosing.leave(self.run_sanitizer);
    arch::switch_last(self.run, 0, 0);
  }
  self.choosing.leave(self.loop_sanitizer);
  enter_for_good<&begin_anew>(self.place.top(), &self, next);
}

constexpr pirn::swap_shrink shrink;
constexpr std::size_t beside_image = sizeof(resting) + alignof(resting);

/// Asks s_alloc for a buffer for an image of `size` bytes and the `resting` beside it.
void* allocate(usched& of, std::size_t size) { return of.s_alloc(&of, static_cast<int>(size + beside_image)); }
void use_buffer(ustack& thread, void* buffer, std::size_t size) noexcept {
  thread.u_stack = buffer;
  thread.u_len = static_cast<int>(size + beside_image);
  thread.u_cont = nullptr;
}

/// Returns the history as of the last block, empty if the program has set another buffer.
buffer_history history_of(const ustack& thread) noexcept {
  const std::size_t at =
      reinterpret_cast<std::uintptr_t>(thread.u_cont) - reinterpret_cast<std::uintptr_t>(thread.u_stack);
  return thread.u_cont != nullptr && at < static_cast<std::size_t>(thread.u_len) ? rest_of(thread).buffer
                                                                                 : buffer_history{};
}

/// Exchanges a buffer of s_alloc that is much too large, as swap_shrink says. Without memory it stays: s_alloc may
/// return null here.
buffer_history shrink_buffer(ustack& thread, std::size_t size) {
  buffer_history known = history_of(thread);
  if (known.allocated == 0 || !shrink.too_large(static_cast<std::size_t>(thread.u_len), size + beside_image)) {
    return {known.allocated, 0};
  }
  if (++known.found < shrink.after) {
    return known;
  }
  usched* const of = thread.u_sched;
  const std::size_t smaller_size = shrink.size_for(size);
  if (void* const smaller = allocate(*of, smaller_size); smaller != nullptr) {
    void* const large = thread.u_stack;
    const int length = thread.u_len;
    use_buffer(thread, smaller, smaller_size);
    of->s_free(of, large, length);
  }
  return {1, 0};
}

/// Exchanges the buffer if it is too small for an image of `size` bytes and the `resting` beside it, or much too large.
PIRN_CALLS_C PIRN_NOINLINE buffer_history make_room(ustack& thread, std::size_t size) {
  if (thread.u_stack != nullptr && size + beside_image <= static_cast<std::size_t>(thread.u_len)) {
    return shrink_buffer(thread, size);
  }
  constexpr std::size_t largest = std::size_t{1} << 30;
  if (!dispatcher_of(thread).place.may_hold(swap_floor(), stack_of_thread) || size > largest) {
    refuse("ustack_block was called on another stack than the one that usched_run was called on");
  }
  usched* const of = thread.u_sched;
  if (thread.u_stack != nullptr) {
    void* const small = thread.u_stack;
    thread.u_stack = nullptr;
    of->s_free(of, small, thread.u_len);
  }
  void* const larger = allocate(*of, size);
  if (larger == nullptr) {
    std::fprintf(stderr, "usched (pirn): s_alloc returned no buffer of %zu bytes; it must end the thread instead\n",
                 size + beside_image);
    std::abort();
  }
  use_buffer(thread, larger, size);
  return {1, 0};
}

ustack& running(const char* complaint) noexcept {
  turn here = current();
  if (const char* const floor = swap_floor(); floor >= here.end) [[unlikely]] {
    forget_if_left(floor);
    here = current();
    if (here.end == nullptr) {
      refuse(complaint);
    }
  }
  return *here.thread();
}

/// Drops the frames of the running thread, or of s_next, which have been unwound, and takes the end of the OS thread to
/// usched_run.
[[noreturn]] PIRN_UNSANITIZED PIRN_COLD void leave_native(dispatcher& self, _Unwind_Exception* what) noexcept {
  self.end_of_native = what;
  const turn left = current();
  run_as(&self, nullptr);
  if (left.end != nullptr) {
    pirn_usched::end_values_if_any(left.of);
  }
  char* const floor = swap_floor();
  swap_sanitizer::clear(floor, static_cast<std::size_t>(self.place.end() - floor));
  swap_sanitizer ended;
  if (self.runs_all) {
    ended.leave_for_good(self.loop_sanitizer);
    enter_for_good<&begin_anew>(self.place.top(), &self, nullptr);
  }
  ended.leave_for_good(self.run_sanitizer);
  arch::switch_last(self.run, 0, 0);
}

/// Called by the unwinder when all frames of the running thread, or of s_next, are left behind.
extern "C" __attribute__((used, visibility("hidden"))) _Unwind_Reason_Code pirn_usched_left(int, _Unwind_Action actions,
                                                                                            _Unwind_Exception_Class,
                                                                                            _Unwind_Exception* what,
                                                                                            _Unwind_Context* frame) {
  if ((actions & _UA_FORCE_UNWIND) == 0) {
    return _URC_CONTINUE_UNWIND;  // no frame catches an exception here
  }
  const turn here = current();
  if (here.end == nullptr && here.of != nullptr) {
    leave_native(*static_cast<dispatcher*>(here.of), what);
  }
  constexpr std::uintptr_t largest_outermost_frames = 1024;
  if (reinterpret_cast<std::uintptr_t>(here.end) - _Unwind_GetCFA(frame) > largest_outermost_frames) {
    refuse("the OS thread ends, by pthread_exit or pthread_cancel, where an inner usched_run was left by longjmp");
  }
  leave_native(*dispatcher::above(here.end), what);
}

/// Continues the end of the OS thread in the caller of usched_run.
[[noreturn]] PIRN_COLD void end_native(_Unwind_Exception* what) noexcept(false) {
  // The unwinder keeps the state of a forced unwind in these fields.
  _Unwind_ForcedUnwind(what, reinterpret_cast<_Unwind_Stop_Fn>(what->private_1),
                       reinterpret_cast<void*>(what->private_2));
  refuse(
      "the end of an OS thread, by pthread_exit or pthread_cancel in a thread, finds no frame above usched_run from "
      "which it can continue");
}

PIRN_ALWAYS_INLINE void run_threads(usched* s, bool all) noexcept(false) {
  if (s->s_next == nullptr || s->s_alloc == nullptr || s->s_free == nullptr) {
    refuse("usched_run was called before the callbacks were set");
  }
#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
  if (&__asan_init != nullptr || &__tsan_init != nullptr) {
    refuse(
        "the program has a sanitizer that this library would have to tell of switches: build the library with it too");
  }
#endif
  if (arch::shadow_stack_active()) {
    refuse("this process runs under a hardware shadow stack: start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off");
  }
  dispatcher self;
  self.of = s;
  self.runs_all = all;
  const char* const floor = swap_floor();
  if (s->s_anchor == nullptr) {
    self.place.choose(floor - sizeof(dispatcher*));
    s->s_anchor = self.place.end();
  } else {
    self.place.choose_end(s->s_anchor);
    if (!self.place.is_below(floor - sizeof(dispatcher*))) {
      refuse("usched_run was called from deeper in the stack than the first time");
    }
  }
  s->s_buf = &self;
  if (floor >= current().end) {
    forget_if_left(floor);
  }
  const turn outer = current();
  run_as(&self, nullptr);
  self.run_sanitizer.leave(self.loop_sanitizer);
  arch::peer resumer;
  arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(&self), 0, 0, 0};
  arch::transfer_into<&begin>(self.place.top(), resumer, words);
  self.run_sanitizer.arrive();
  self.choosing.discard();
  run_as(outer.of, outer.end);
  if (self.end_of_native != nullptr) [[unlikely]] {
    end_native(self.end_of_native);
  }
}

}  // namespace

extern "C" {

void usched_run(usched* s) { run_threads(s, false); }
void pirn_usched_run_all(usched* s) { run_threads(s, true); }

void ustack_init(ustack* u, usched* s, void (*f)(void*), void* arg, void* stack, int len) {
  pirn_usched::end_values_if_any(u);
  *u = ustack{s, nullptr, nullptr, stack, len, nullptr, f, arg};
}

PIRN_NOINLINE void ustack_block() {
  ustack& thread = running("ustack_block was called outside of a thread");
  const dispatcher& self = dispatcher_of(thread);
  const std::size_t size = self.place.size_at(swap_floor());
  buffer_history buffer;
  // A large buffer may be much too large.
  if (const auto length = static_cast<std::size_t>(thread.u_len);
      thread.u_stack == nullptr || size + beside_image > length || shrink.applies_to(length)) {
    buffer = make_room(thread, size);
  }
  const auto after = reinterpret_cast<std::uintptr_t>(thread.u_stack) + size;
  thread.u_cont = new (reinterpret_cast<void*>((after + alignof(resting) - 1) & ~(alignof(resting) - 1))) resting;
  rest_of(thread).buffer = buffer;
  arch::peer resumer;
  arch::word words[arch::value_words] = {reinterpret_cast<arch::word>(&thread), size, 0, 0};
  arch::transfer_into<&leave>(self.place.below(size), resumer, words);
  rest_of(*current().thread()).sanitizer.arrive();
}
void usched_block() { ustack_block(); }

PIRN_UNSANITIZED void ustack_abort() {
  const ustack& left = running("ustack_abort was called outside of a thread");
  dispatcher& self = dispatcher_of(left);
  run_as(&self, nullptr);
  pirn_usched::end_values_if_any(&left);
  // Its frames are dropped, and with them the red zones of ASan.
  char* const floor = swap_floor();
  swap_sanitizer::clear(floor, static_cast<std::size_t>(self.place.end() - floor));
  swap_sanitizer ended;
  ended.leave_for_good(self.loop_sanitizer);
  enter_for_good<&begin_anew>(self.place.top(), &self, nullptr);
}
void usched_abort() { ustack_abort(); }

ustack* ustack_self() { return &running("ustack_self was called outside of a thread"); }

}  // extern "C"

ustack* pirn_usched::thread_at(const void* sp) noexcept {
  const turn now = current();
  swap_place place;
  place.choose_end(const_cast<char*>(now.end));
  return now.end != nullptr && place.may_hold(static_cast<const char*>(sp), stack_of_thread) ? now.thread() : nullptr;
}

bool pirn_usched::in_fiber() noexcept {
  return &pirn::detail::usched_of_fiber != nullptr &&
         pirn::detail::usched_of_fiber(pirn::detail::slot_access::read) != nullptr;
}
