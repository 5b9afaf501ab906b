// Records the steps of an execution, and describes its threads.
#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <tuple>

#include "pirn/detail/platform.hpp"
#include "sim/execution.hpp"
#include "stack/slab_registry.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

const char* to_string(step_kind kind) noexcept {
  static constexpr const char* names[] = {"load",        "store", "change", "lock",  "try to lock", "unlock", "fence",
                                          "read",        "write", "wait",   "wake",  "start",       "end",    "join",
                                          "time passes", "fault", "socket", "abort", "crash"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

struct unwinding {
  recorded_step* into;
};

_Unwind_Reason_Code keep_frame(_Unwind_Context* context, void* raw) {
  recorded_step& step = *static_cast<unwinding*>(raw)->into;
  if (step.frame_count == recorded_step::max_frames) {
    return _URC_END_OF_STACK;
  }
  step.frames[step.frame_count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

}  // namespace

recorded_step& execution::add_step(step_kind kind, const void* here) {
  recorded_step& made = record_->emplace_back();
  made.kind = kind;
  made.thread_name = name_of(running_->index);
  made.by_daemon = running_->daemon && kind != step_kind::time_passes;
  if (!running_->runs_on.contains(here)) {
    if (auto found = fiber_of(platform::current_worker(), here); found.first != 0) {
      running_->last_fiber = std::move(found);
    }  // otherwise the fiber has left the run queue already
    std::tie(made.fiber, made.fiber_name) = running_->last_fiber;
  }
  made.when = now_;
  return made;
}

void execution::record(step_kind kind, const location* of, std::uint64_t value, value_type type) {
  const platform::quiet unseen;
  recorded_step& made = add_step(kind, __builtin_frame_address(0));
  made.word = of != nullptr ? of->name : 0;
  made.value = value;
  made.type = type;
  unwinding request{&made};
  _Unwind_Backtrace(&keep_frame, &request);
}

void execution::record_end(step_kind kind, const pirn::detail::registers& at) {
  if (record_ == nullptr) {
    return;
  }
  const platform::quiet unseen;
  // A thread that overflows a stack has its sp in the guard; it runs on the stack above that.
  const auto* const sp = reinterpret_cast<const void*>(at.sp);
  pirn::detail::slot_site overflown;
  const bool overflows = pirn::detail::find_guard(sp, 1, overflown);
  recorded_step& made = add_step(kind, overflows ? reinterpret_cast<const void*>(overflown.limit) : sp);
  pirn::detail::backtrace calls;
  calls.collect(at.pc);
  made.frame_count = std::min<std::size_t>(calls.size(), pirn::detail::backtrace::innermost);
  for (unsigned i = 0; i < made.frame_count; ++i) {
    made.frames[i] = calls[i].lookup + 1;
  }
  if (Dl_info in; dladdr(reinterpret_cast<void*>(at.pc), &in) == 0) {  // the program has called an address without code
    made.frames[made.frame_count++] = *reinterpret_cast<const std::uintptr_t*>(at.sp);
  }
}

std::string execution::name_of(unsigned thread) const {
  const std::string name = threads_[thread]->name;
  return thread == 0 || threads_[thread]->daemon ? name
         : name.starts_with("pirn-")             ? "worker " + name.substr(5)
                                                 : name + " " + std::to_string(thread);
}

std::string execution::state() const {
  std::string text;
  for (unsigned i = 0; i < used_; ++i) {
    const virtual_thread& each = *threads_[i];
    if (each.now == virtual_thread::state::finished) {
      continue;
    }
    text += name_of(i) + ": ";
    if (&each == running_) {
      text += "runs";
    } else if (each.now == virtual_thread::state::blocked) {
      text += each.deadline == platform::never ? "blocked" : "blocked until a deadline";
    } else {
      text += each.pending == access::lock ? "waits for a spinlock" : "could run";
    }
    if (&each != running_) {
      text += ", since " + std::to_string(steps_ - each.since) + " steps";
    }
    text += "\n";
  }
  return text + describe_fibers();
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
