// Backtraces: from inside a context, of a suspended one, at every instruction of a switch, and from a profiling
// signal that strikes while contexts switch.
#include <execinfo.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstring>

#include "conformance_isa.hpp"
#include "context/pushed.hpp"
#include "pirn/context/expert/unwind.hpp"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the program's entry point, where a thread's backtrace ends
extern "C" void program_entry() asm("_start");
// Where the code of the program begins and ends, from the linker.
extern "C" const char program_begin[] asm("__executable_start");
extern "C" const char program_end[] asm("etext");

namespace conformance {
namespace {

// ---- reading a backtrace ----------------------------------------------------------------------------------------

constexpr int max_frames = 64;

// The frames that a walk met. Signal handlers fill it in too: no allocation, no locks.
struct trace {
  word function[max_frames] = {};  // where the function of each frame begins
  word pc[max_frames] = {};
  int frames = 0;
  bool ended = false;      // by an address of 0, which comes only from a table that says "no caller"
  bool in_order = true;    // outer frames lie higher on the same stack
  word stack_pointer = 0;  // of the last frame
  bool past_signal;        // only then do all frames lie on one stack
  _Unwind_Reason_Code result = _URC_NO_REASON;

  explicit trace(bool in_handler = false) : past_signal(!in_handler) {}
  bool shows(const void* begin) const {
    for (int i = 0; i < frames; ++i) {
      if (function[i] == reinterpret_cast<word>(begin)) {
        return true;
      }
    }
    return false;
  }
  bool ends_at(const void* begin) const { return frames > 0 && function[frames - 1] == reinterpret_cast<word>(begin); }
  // Whether every frame was known, and the last one is marked as outermost.
  bool clean() const { return ended && in_order && result == _URC_END_OF_STACK; }
  bool ends_at_context_root() const {
    return ends_at(address(&arch::root_frame)) || (frames > 0 && is_start_frame(function[frames - 1]));
  }
  bool ends_at_program() const { return !backtrace_reaches_start || ends_at(address(&program_entry)); }

  template <class Function>
  static const void* address(Function* function) {
    return reinterpret_cast<const void*>(function);
  }
};

_Unwind_Reason_Code note_frame(_Unwind_Context* frame, void* raw) {
  auto& seen = *static_cast<trace*>(raw);
  int interrupted = 0;
  const word pc = _Unwind_GetIPInfo(frame, &interrupted);
  if (pc == 0) {
    seen.ended = true;
    return _URC_NO_REASON;
  }
  const word sp = _Unwind_GetCFA(frame);
  if (seen.past_signal && seen.stack_pointer != 0 && sp < seen.stack_pointer) {
    seen.in_order = false;
  }
  const bool walker =
      _Unwind_GetRegionStart(frame) == reinterpret_cast<word>(trace::address(&arch::detail::walk_as_if_called_by));
  if (interrupted != 0 || walker) {  // its caller may lie on another stack
    seen.past_signal = true;
    seen.stack_pointer = 0;
  } else if (seen.past_signal) {
    seen.stack_pointer = sp;
  }
  if (seen.frames == max_frames) {
    return _URC_NORMAL_STOP;
  }
  seen.pc[seen.frames] = pc;
  seen.function[seen.frames++] = _Unwind_GetRegionStart(frame);
  return _URC_NO_REASON;
}

CONFORMANCE_KEEP void take(trace& seen) {
  seen.result = _Unwind_Backtrace(&note_frame, &seen);
  asm volatile("");
}

// ---- from inside ------------------------------------------------------------------------------------------------

trace from_inside;
void* by_glibc[max_frames];
int frames_by_glibc;

template <class Shape>
CONFORMANCE_KEEP void innermost(Shape& shape) {
  take(from_inside);
  frames_by_glibc = backtrace(by_glibc, max_frames);
  shape.yield();
  asm volatile("");
}

template <class Shape>
CONFORMANCE_KEEP void middle(Shape& shape) {
  innermost(shape);
  asm volatile("");  // not a tail call
}

template <class Shape>
CONFORMANCE_KEEP void outermost(Shape& shape) {
  middle(shape);
  asm volatile("");
}

bool in_root_frame(const void* pc) {
  const word offset = reinterpret_cast<word>(pc) - reinterpret_cast<word>(&arch::root_frame);
  return offset == 8;
}

// backtrace() gives return addresses only. Here the address of a function's frame lies within a page of the function's
// beginning.
bool glibc_shows(const void* begin) {
  for (int i = 0; i < frames_by_glibc; ++i) {
    if (reinterpret_cast<word>(by_glibc[i]) - reinterpret_cast<word>(begin) < 4096) {
      return true;
    }
  }
  return false;
}

template <class Shape>
void walk_inside_and_suspended() {
  static Shape shape;
  from_inside = trace();
  frames_by_glibc = 0;
  shape.make(&outermost<Shape>);

  if (Shape::prepared) {
    trace fresh;
    fresh.result = arch::backtrace_suspended(&shape.inside, &note_frame, &fresh);
    expect(fresh.clean() && fresh.frames == 1 && fresh.ends_at_context_root(), Shape::name,
           "backtrace_suspended of a fresh context shows its start frame");
  }

  shape.resume();
  const void* inner = trace::address(&innermost<Shape>);
  const void* mid = trace::address(&middle<Shape>);
  const void* outer = trace::address(&outermost<Shape>);
  expect(from_inside.shows(inner) && from_inside.shows(mid) && from_inside.shows(outer) && from_inside.clean() &&
             from_inside.ends_at_context_root(),
         Shape::name, "_Unwind_Backtrace from inside ends at the root");
  expect(
      frames_by_glibc > 3 && glibc_shows(inner) && glibc_shows(outer) && in_root_frame(by_glibc[frames_by_glibc - 1]),
      Shape::name, "backtrace() from inside ends at the root");

  trace suspended;
  suspended.result = arch::backtrace_suspended(&shape.inside, &note_frame, &suspended);
  // An inlined switch makes `innermost` the first frame, one that is not inlined the second.
  const bool inner_first =
      suspended.function[0] == reinterpret_cast<word>(inner) || suspended.function[1] == reinterpret_cast<word>(inner);
  expect(suspended.frames > 3 && inner_first && suspended.shows(mid) && suspended.shows(outer), Shape::name,
         "backtrace_suspended shows the frames of a suspended context");
  expect(suspended.clean() && suspended.ends_at_context_root(), Shape::name, "backtrace_suspended ends at the root");

  shape.resume();
  if (Shape::prepared) {
    trace ended;
    ended.result = arch::backtrace_suspended(&shape.inside, &note_frame, &ended);
    expect(shape.ended && ended.clean() && !ended.shows(inner), Shape::name,
           "backtrace_suspended follows the context as it runs on");
  } else {
    expect(shape.ended && arch::is_tagged(shape.inside), Shape::name, "a context that has ended is tagged");
  }
}

// ---- the common part of both kinds of signal --------------------------------------------------------------------

// Handlers write it on the thread that runs the checks, which reads it afterwards.
struct watch {
  volatile long strikes = 0;
  volatile long unclean = 0;
  volatile long in_context = 0;
  volatile long in_start_frame = 0;
  volatile long clean_ends = 0;
  volatile word first_bad_pc = 0;
};
watch watched;

// The build's statement about code outside of pirn.
#if defined(CONFORMANCE_TABLES_HAVE_GAPS)
constexpr bool tables_are_whole = false;
#else
constexpr bool tables_are_whole = tables_hold_everywhere;
#endif

void look(void* raw_context) {
  if (!tables_are_whole) {
    return;
  }
  const word pc = interrupted_pc(raw_context);
  trace seen(true);
  take(seen);
  watched.strikes = watched.strikes + 1;
  if (seen.ends_at_context_root()) {
    watched.in_context = watched.in_context + 1;
  }
  // The lookup takes its argument for a return address, and looks at the byte before it.
  if (is_start_frame(reinterpret_cast<word>(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(pc + 1))))) {
    watched.in_start_frame = watched.in_start_frame + 1;
  }
  watched.clean_ends = watched.clean_ends + (seen.clean() ? 1 : 0);
  // Some C libraries have functions without unwind tables, which these checks leave out.
  bool ours = pc - reinterpret_cast<word>(program_begin) < static_cast<word>(program_end - program_begin);
#if defined(__riscv) || defined(__aarch64__)
  // They also leave out the stubs by which a program calls such functions: this linker writes no tables for those.
  ours = ours && _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(pc)) != nullptr;
#elif defined(__i386__)
  ours = ours && !in_startup_thunk(pc);
#endif
  if (ours && (!seen.clean() || !(seen.ends_at_context_root() || seen.ends_at_program()))) {
    if (watched.unclean == 0) {
      watched.first_bad_pc = pc;
    }
    watched.unclean = watched.unclean + 1;
  }
}

void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;  // on the stack that it strikes: no SA_ONSTACK
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

// ---- one instruction at a time ----------------------------------------------------------------------------------

volatile bool stepping;
volatile long sum_of_pushed;

void on_step(int, siginfo_t*, void* raw_context) {
  keep_stepping(raw_context, stepping);
  if (stepping) {
    look(raw_context);
  }
}

template <class Shape>
void yield_twice(Shape& shape) {
  shape.yield();
  sum_of_pushed = pushed::listed(10, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L);
  shape.yield();
}

template <class Shape>
void step() {
  static Shape shape;
  static trace during;
  during = trace();
  watched = watch();
  handle(SIGTRAP, &on_step);
  stepping = true;
  begin_stepping();
  shape.start(&yield_twice<Shape>);
  shape.resume();
  during.result = arch::backtrace_suspended(&shape.inside, &note_frame, &during);
  shape.resume();
  stepping = false;
  asm volatile("nop" ::: "memory");  // the trap after this one finds that stepping is over
  signal(SIGTRAP, SIG_DFL);
  if (watched.unclean != 0) {
    std::printf("       %ld of %ld instructions, first at %p\n", watched.unclean, watched.strikes,
                reinterpret_cast<void*>(watched.first_bad_pc));
  }
  expect(shape.ended && watched.strikes > 100 && watched.in_context > 50 &&
             (watched.in_start_frame > 1) == Shape::prepared,
         Shape::name, "single-stepped through entry, switches and a walk");
  expect(watched.unclean == 0, Shape::name, "unwinds to the root at every instruction");
  expect(during.clean() && during.ends_at_context_root(), Shape::name, "backtrace_suspended under single-stepping");
}

// ---- ten thousand times a second --------------------------------------------------------------------------------

// One signal at a time. An emulator may unwind for longer than a tick; with a periodic timer the next signal would then
// be there whenever a handler returns, and nothing else would ever run.
timer_t ticking;
bool ticks;
bool set_off() {
  const itimerspec once = {{0, 0}, {0, 100'000}};
  return timer_settime(ticking, 0, &once, nullptr) == 0;
}

void on_profile(int, siginfo_t*, void* raw_context) {
  look(raw_context);
  if (ticks) {
    set_off();
  }
}

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A POSIX timer: the interval timers of ITIMER_PROF tick no faster than the kernel.
class profiling_timer {
 public:
  profiling_timer() {
    handle(SIGPROF, &on_profile);
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGPROF;
    created_ = timer_create(CLOCK_MONOTONIC, &event, &ticking) == 0;
    ticks = created_;
    created_ = created_ && set_off();
  }
  ~profiling_timer() {
    signal(SIGPROF, SIG_IGN);
    ticks = false;
    timer_delete(ticking);
  }
  bool created() const { return created_; }

 private:
  bool created_ = false;
};

// Whether the unwinder knows the frames that this kernel, or its emulator, puts under signal handlers.
bool signals_can_be_unwound() {
  if (!tables_are_whole) {
    return false;
  }
  static const bool known = [] {
    watched = watch();
    handle(SIGPROF, &on_profile);
    raise(SIGPROF);
    return watched.clean_ends != 0;
  }();
  return known || kernel_frames_are_known;
}

volatile unsigned long turns_of_context;

template <class Shape>
void turn_forever(Shape& shape) {
  for (;;) {
    turns_of_context = turns_of_context + 1;
    shape.yield();
  }
}

// New contexts are entered again and again too, so that signals strike the start frame.
template <class Shape>
void switch_under_fire(double seconds) {
  static Shape steady, renewed;
  turns_of_context = 0;
  unsigned long turns_of_main = 0;
  // The signals take longer to come on a machine that is busy with other work.
  const bool counts = signals_can_be_unwound();
  watched = watch();
  const double end = seconds_now() + seconds, latest_end = end + 20 * seconds + 20;
  const double enough = seconds * 500;
  const profiling_timer timer;
  steady.start(&turn_forever<Shape>);
  ++turns_of_main;
  do {
    for (int i = 0; i < 2000; ++i) {
      steady.resume();
      renewed.start(&turn_forever<Shape>);
      steady.resume();
    }
    turns_of_main += 6000;
  } while (seconds_now() < end || (counts && seconds_now() < latest_end &&
                                   (static_cast<double>(watched.strikes) < enough || watched.in_context == 0)));
  const long strikes = watched.strikes, unclean = watched.unclean;
  std::printf("       %ld signals in %.1f s, %ld of them on a context's stack, %lu switches\n", strikes, seconds,
              static_cast<long>(watched.in_context), turns_of_main * 2);
  if (unclean != 0) {
    std::printf("       %ld unclean, first at %p\n", unclean, reinterpret_cast<void*>(watched.first_bad_pc));
  }
  if (signals_can_be_unwound()) {
    expect(timer.created() && static_cast<double>(strikes) >= enough && watched.in_context > 0, Shape::name,
           "a profiling signal strikes both stacks");
    expect(unclean == 0, Shape::name, "every profiling signal unwinds to the root");
  }
  expect(turns_of_main == turns_of_context, Shape::name, "no switch is lost under profiling");
}

}  // namespace

void check_unwinding() {
  walk_inside_and_suspended<by_switch_to>();
  walk_inside_and_suspended<by_transfer>();
  walk_inside_and_suspended<by_transfer_into>();
#if defined(CONFORMANCE_HAS_FORK)
  walk_inside_and_suspended<by_fork>();
#endif
}

void check_single_step() {
  if (under_valgrind() || !can_single_step || !tables_are_whole) {
    return;
  }
  step<by_switch_to>();
  step<by_transfer>();
  step<by_transfer_into>();
#if defined(CONFORMANCE_HAS_FORK)
  step<by_fork>();
#endif
}

void check_profiling(double seconds) {
  if (under_valgrind()) {
    return;
  }
  switch_under_fire<by_switch_to>(seconds / 3);
  switch_under_fire<by_transfer>(seconds / 3);
  switch_under_fire<by_transfer_into>(seconds / 3);
#if defined(CONFORMANCE_HAS_FORK)
  switch_under_fire<by_fork>(seconds / 3);
#endif
}

// ---- for a debugger ---------------------------------------------------------------------------------------------

extern "C" CONFORMANCE_KEEP void conformance_stop() { asm volatile("nop"); }

namespace {
template <class Shape>
CONFORMANCE_KEEP void stop_inside(Shape& shape) {
  conformance_stop();
  shape.yield();
  asm volatile("");
}

template <class Shape>
void enter_and_stop(Shape& shape) {
  stop_inside(shape);
  asm volatile("");
}
}  // namespace

void stop_for_debugger() {
  static by_switch_to first;
  first.start(&enter_and_stop<by_switch_to>);
  first.resume();
  static by_transfer second;
  second.start(&enter_and_stop<by_transfer>);
  second.resume();
  expect(first.ended && second.ended, nullptr, "ran on after the debugger");
}

}  // namespace conformance
