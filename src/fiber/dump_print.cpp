// Prints the fibers of a worker and their backtraces, also from a signal handler.
#include "fiber/dump_print.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <iterator>

#include "pirn/context/expert/unwind.hpp"
#include "pirn/fiber/detail/coroutine_runner.hpp"
#include "pirn/stack/expert/small_stacks.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

/// The innermost frames of one stack. `lookup` is a byte of the instruction that executes: the return address of a
/// call may belong to the next function already.
struct trace {
  static constexpr unsigned max_frames = 32;
  struct place {
    std::uintptr_t pc;
    std::uintptr_t lookup;
  };
  place places[max_frames] = {};
  unsigned count = 0;
  bool cut = false;

  _Unwind_Reason_Code add(_Unwind_Context* frame) noexcept {
    int before_instruction = 0;
    const std::uintptr_t pc = _Unwind_GetIPInfo(frame, &before_instruction);
    if (pc == 0) {
      return _URC_END_OF_STACK;
    }
    if (count == max_frames) {
      cut = true;
      return _URC_END_OF_STACK;
    }
    places[count++] = {pc, before_instruction != 0 ? pc : pc - 1};
    return _URC_NO_REASON;
  }
};

/// The functions that replace their frame by that of an exception's handler. In the middle of that, the caller
/// registers that they saved are those of the new frame, and a walk from there reads anything as code and as stack.
constinit void* unwinders[8] = {};

bool in_unwinder(std::uintptr_t pc) noexcept {
  void* const function = _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(pc));
  return function != nullptr && std::find(std::begin(unwinders), std::end(unwinders), function) != std::end(unwinders);
}

// Static, since a handler's stack is small; only one dump runs at a time.
constinit trace live;
constinit trace suspended;

/// Walks from the handler through the frame that the kernel made into the interrupted code, so that all registers are
/// known: in the middle of a switch the unwind tables need more than pc, sp and fp.
struct live_walk {
  std::uintptr_t interrupted_pc;
  std::uintptr_t handler_stack;
  std::uintptr_t handler_stack_size;
  bool arrived = false;
  unsigned off_handler_stack = 0;
  std::uintptr_t sp = 0;         // of the innermost frame that is not on the handler's stack
  std::uintptr_t caller_sp = 0;  // of the frame that called it

  static _Unwind_Reason_Code step(_Unwind_Context* frame, void* raw) {
    auto* const walk = static_cast<live_walk*>(raw);
    const std::uintptr_t pc = _Unwind_GetIP(frame);
    if (pc == 0) {
      return _URC_END_OF_STACK;
    }
    if (!walk->arrived && pc == walk->interrupted_pc) {
      walk->arrived = true;
      live.count = 0;
    }
    const std::uintptr_t at = _Unwind_GetCFA(frame);  // of the callee's frame: the sp of this one
    if (at - walk->handler_stack >= walk->handler_stack_size && walk->off_handler_stack < 2) {
      (walk->off_handler_stack++ == 0 ? walk->sp : walk->caller_sp) = at;
    }
    const _Unwind_Reason_Code result = live.add(frame);
    if (!walk->arrived) {
      return _URC_NO_REASON;
    }
    if (in_unwinder(pc)) {
      live.cut = true;
      return _URC_END_OF_STACK;
    }
    return result;
  }
};

/// Returns the stack position of the code that a handler interrupted. While a switch exchanges sp and fp, the tables
/// describe the context that is being resumed; the state of the other one is complete by then. So the caller's frame
/// decides.
std::uintptr_t walk_interrupted(const ucontext_t& interrupted) noexcept {
  live.count = 0;
  live.cut = false;
  const registers at = registers_of(&interrupted);
  const bool has_handler_stack = (interrupted.uc_stack.ss_flags & SS_DISABLE) == 0;
  live_walk walk{at.pc, reinterpret_cast<std::uintptr_t>(interrupted.uc_stack.ss_sp),
                 has_handler_stack ? interrupted.uc_stack.ss_size : 0};
  _Unwind_Backtrace(&live_walk::step, &walk);
  return walk.caller_sp != 0 ? walk.caller_sp : walk.sp != 0 ? walk.sp : at.sp;
}

/// The names of places seen before in this dump: many fibers wait in few places, and finding a name means reading the
/// symbol table of a file.
class name_cache {
 public:
  void clear() noexcept {
    for (auto& each : known_) {
      each.pc = 0;
    }
  }
  /// Looks up all unknown names together: each lookup costs a pass over the symbol tables.
  void learn(const trace& from) noexcept {
    finder_.clear();
    for (unsigned i = 0; i < from.count; ++i) {
      const trace::place& each = from.places[i];
      if (!known(each)) {
        finder_.add(each.pc, each.lookup);
      }
      if (finder_.size() == backtrace::innermost || (i + 1 == from.count && finder_.size() != 0)) {
        finder_.resolve();
        for (unsigned n = 0; n < finder_.size(); ++n) {
          slot(finder_[n].pc) = finder_[n];
          slot(finder_[n].pc).times = 1;
        }
        finder_.clear();
      }
    }
  }
  const backtrace::frame& find(const trace::place& where) noexcept {
    if (!known(where)) {
      finder_.clear();
      finder_.add(where.pc, where.lookup);
      finder_.resolve();
      slot(where.pc) = finder_[0];
    }
    return slot(where.pc);
  }

 private:
  static constexpr int bits = 8;
  backtrace::frame& slot(std::uintptr_t pc) noexcept { return known_[pc * 0x9e3779b97f4a7c15u >> (64 - bits)]; }
  bool known(const trace::place& where) noexcept {
    return slot(where.pc).pc == where.pc && slot(where.pc).lookup == where.lookup;
  }

  backtrace::frame known_[1 << bits] = {};
  backtrace finder_;
};
constinit name_cache names;

void print_trace(message& out, const trace& from) noexcept {
  names.learn(from);
  for (unsigned i = 0; i < from.count; ++i) {
    out.text("    #").number(i).text(" ");
    names.find(from.places[i]).print(out);
  }
  if (from.cut) {
    out.text("    ...\n");
  }
}

/// Returns the chain of tasks that the fiber awaits, if the chain waits and belongs to the same worker `w`; else null.
const coroutine_agent* awaited_task(const fiber_control& f, const worker& w) noexcept {
  if (!f.waiting() || f.waits->wakeable_by != awaited::task) {
    return nullptr;
  }
  const auto* const chain = static_cast<const coroutine_agent*>(f.waits->object);
  return chain->waiting() && &chain->home() == &w ? chain : nullptr;
}

/// Returns the bytes of a small stack that its fiber may use: those above the canary, or above the band if that is
/// whole.
std::size_t usable_bytes(const stack& small) noexcept {
  return small_stacks::band_is_whole(small)
             ? static_cast<std::size_t>(static_cast<char*>(small.top()) - small_stacks::end_of_band(small))
             : small.size();
}

void print_fiber(message& out, const worker& w, const fiber_control& f, bool on_cpu) noexcept {
  const coroutine_agent* const chain = on_cpu ? nullptr : awaited_task(f, w);
  out.text("  fiber ").number(f.number()).text(" \"").text(f.name()).text("\": ");
  if (on_cpu) {
    out.text("running");
  } else if (f.waiting()) {
    out.text("waiting for ").text(f.waits->what);
    if (f.waits->object != nullptr) {
      out.text(" at ").address(reinterpret_cast<std::uintptr_t>(f.waits->object));
    }
    if (const fiber_control* const holder = holder_of(*f.waits)) {
      out.text(", held by fiber ").number(holder->number());
    }
    if (chain != nullptr) {
      out.text(", which waits for ").text(chain->waits_for);
      if (chain->waits_at != nullptr) {
        out.text(" at ").address(reinterpret_cast<std::uintptr_t>(chain->waits_at));
      }
    }
  } else {
    out.text(f.fresh() ? "not started" : "ready");
  }
  if (platform::exploring) {
    out.text("\n");  // the length of a stack depends on what ran before
  } else if (small_stacks::has(f.memory)) {
    // The pages are shared with other stacks, so they do not tell how much of this one was touched.
    out.text(", stack ").number(usable_bytes(f.memory)).text(" bytes, without a guard\n");
  } else if (f.memory) {
    out.text(", stack ").number(f.newest_stack().size()).text(" bytes, ");
    out.number(high_water(f.newest_stack())).text(" touched\n");
  } else {
    out.text(", no stack yet\n");
  }
  if (on_cpu) {
    print_trace(out, live);
    return;
  }
  if (f.fresh()) {  // its stack, if it has one, holds only the place where it will begin
    const auto unstarted = reinterpret_cast<std::uintptr_t>(f.entry_without_stack());
    const auto entry = unstarted != 0 ? unstarted : *static_cast<const std::uintptr_t*>(f.state.sp);
    suspended.places[0] = {entry, entry};
    suspended.count = 1;
    out.text("    begins in:\n");
    print_trace(out, suspended);
    return;
  }
  if (chain != nullptr) {
    // A frame begins with the function that resumes it.
    const std::uintptr_t resumes = *static_cast<const std::uintptr_t*>(chain->continuation.address());
    suspended.places[0] = {resumes, resumes};
    suspended.count = 1;
    out.text("    the task continues in:\n");
    print_trace(out, suspended);
    out.text("    and the fiber in:\n");
  }
  suspended.count = 0;
  suspended.cut = false;
  arch::backtrace_suspended(
      &f.state,
      [](_Unwind_Context* frame, void* into) -> _Unwind_Reason_Code { return static_cast<trace*>(into)->add(frame); },
      &suspended);
  print_trace(out, suspended);
}

}  // namespace

void prepare_dumps() noexcept {
  if (unwinders[0] != nullptr) {
    return;
  }
  // In a program that is not position-independent a function's address may be that of a stub: so looked up by name as
  // well.
  void* const found[] = {
      reinterpret_cast<void*>(&_Unwind_RaiseException),
      reinterpret_cast<void*>(&_Unwind_ForcedUnwind),
      reinterpret_cast<void*>(&_Unwind_Resume),
      reinterpret_cast<void*>(&_Unwind_Resume_or_Rethrow),
      dlsym(RTLD_DEFAULT, "_Unwind_RaiseException"),
      dlsym(RTLD_DEFAULT, "_Unwind_ForcedUnwind"),
      dlsym(RTLD_DEFAULT, "_Unwind_Resume"),
      dlsym(RTLD_DEFAULT, "_Unwind_Resume_or_Rethrow"),
  };
  static_assert(sizeof found == sizeof unwinders);
  std::copy(std::begin(found), std::end(found), unwinders);
}

void begin_dump() noexcept { names.clear(); }

namespace {

/// Returns whether the scheduler executes. It may already have made a fiber the running one and not yet switched to it.
/// It uses far less than the smallest stack of a thread.
bool in_scheduler(const worker& w, std::uintptr_t sp) noexcept {
  constexpr std::uintptr_t deepest = 16384;
  return reinterpret_cast<std::uintptr_t>(w.scheduler_frame) - sp < deepest;
}

void print_fibers_held(const worker& w, bool alone, message& out, const void* signal_context) noexcept {
  const std::uintptr_t at =
      signal_context != nullptr ? walk_interrupted(*static_cast<const ucontext_t*>(signal_context)) : 0;
  const auto* const sp = reinterpret_cast<const void*>(at);
  const fiber_control* on_cpu = nullptr;
  // Another worker may take such a fiber, and run it, while it is looked at.
  const auto may_go = [&](const fiber_control& f) { return !alone && f.stealable(); };
  block_chunk::for_each(w, [&](const fiber_control& f) {
    if (!may_go(f) && f.newest_stack().contains(sp)) {
      on_cpu = &f;
    }
  });
  if (on_cpu == nullptr && w.forks.open.on_stack(sp)) {
    on_cpu = w.forks.open.caller();
  }
  if (on_cpu == nullptr && w.queue.runs_fiber() && !in_scheduler(w, at)) {
    // Its sp is on a stack that it has made, such as a coroutine's, or it has run off its stack. Its saved state is
    // old.
    on_cpu = running_fiber(&w);
  }
  out.text("  worker ").number(w.index).text(" (thread ");
  out.number(static_cast<std::uintptr_t>(w.thread_id.load(platform::memory_order_relaxed))).text("): ");
  if (on_cpu != nullptr) {
    out.text("runs fiber ").number(on_cpu->number()).text("\n");
  } else {
    out.text("runs no fiber\n");
  }
  block_chunk::for_each(w, [&](const fiber_control& f) {
    if (may_go(f) && &f != on_cpu) {
      out.text("  fiber ").number(f.number()).text(": waiting, or ready for any worker\n");
    } else {
      print_fiber(out, w, f, &f == on_cpu);
    }
  });
}

}  // namespace

void print_fibers(worker& w, message& out, const void* signal_context) noexcept {
  {
    const stealable_queue::hold held(w.stealable, w.owner.workers);
    const fork_deque::hold open_held(w.forks.open);
    print_fibers_held(w, held.alone(), out, signal_context);
  }
  if (!w.stealable.empty()) {  // thieves have left it alone meanwhile
    static_cast<void>(w.idle->recruit_searcher());
  }
}

void print_turn(const worker& w, platform::duration lasts, message& out, const void* signal_context) noexcept {
  const fiber_control& f = *running_fiber(&w);
  walk_interrupted(*static_cast<const ucontext_t*>(signal_context));
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(lasts).count();
  out.text("pirn: fiber ").number(f.number()).text(" \"").text(f.name()).text("\" has kept worker ").number(w.index);
  out.text(" for ").number(static_cast<std::uintptr_t>(milliseconds)).text(" ms\n");
  print_trace(out, live);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
