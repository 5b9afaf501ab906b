// Unwinds the stack of a suspended context that will not be resumed any more.
//
//   canceller                                   suspended context
//   forced_unwind cancel("name");
//   transfer(tagged peer, &cancel)  ------->   is_tagged: a cold branch calls cancel.raise()
//                                               destructors run, innermost frame first
//                                               run_unwindable, in the entry function, returns `unwound`
//   ~forced_unwind               <-------       transfer_last
//
// It is a foreign exception of the unwinder, not a C++ exception: nothing is allocated, no `catch` names it, and a
// `catch (...)` that ends without `throw;` gives it back to us (as the exception's cleanup), where it is restarted.
// While it runs, std::uncaught_exceptions() is one higher, so that scope guards see a failure; in a `catch (...)` block
// that sees it too, since the runtime does not count a foreign exception as caught.
//
// The first unwind of a process, which binds the unwinder's functions, takes about 5 KB of the suspended stack below
// the frame that is suspended, later ones about 2 KB.
#pragma once

#include <cxxabi.h>
#include <unwind.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/context/detail/per_fiber.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/exceptions.hpp"  // IWYU pragma: keep
#include "pirn/detail/platform.hpp"

/// Returns the calling thread's `pirn::exception_globals`: the function of the C++ runtime, under a name of pirn's.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the Itanium ABI's
extern "C" void* pirn_exception_globals() noexcept asm("__cxa_get_globals");

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The state that the C++ runtime keeps per OS thread for exceptions in flight (Itanium C++ ABI, 2.2.2): the list of
/// caught ones and the count of those thrown and not yet caught.
struct exception_globals {
  void* caught = nullptr;  ///< the exception caught last, which links to those before it
  unsigned uncaught = 0;   ///< exceptions thrown and not yet caught

  /// Returns the state of the calling OS thread, valid until the thread ends.
  [[nodiscard]] static exception_globals& of_thread() noexcept {
    return *static_cast<exception_globals*>(pirn_exception_globals());
  }
  /// Returns a number that is not zero if exceptions are in flight.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t bits() const noexcept {
    return reinterpret_cast<std::uintptr_t>(caught) | uncaught;
  }
};

/// Receives one line, without a line feed, about an unwind that was resisted. May be called on any stack.
using unwind_reporter = void (*)(const char* line) noexcept;

/// How a body ended.
enum class ending : std::uint8_t {
  returned,
  threw,    ///< an exception of the body; null for the end of the OS thread, see rethrow_of_body
  unwound,  ///< by forced_unwind::raise
};

/// One cancellation. Lives in the frame of the canceller, which waits meanwhile; both run on the same OS thread. The
/// constructor takes the thread's exceptions in flight away from the canceller, the destructor gives them back.
class forced_unwind {
 public:
  /// `name` is for messages.
  PIRN_COLD explicit forced_unwind(const char* name) noexcept
      : name_(name), cancellers_(std::exchange(exception_globals::of_thread(), {})) {}
  ~forced_unwind();
  forced_unwind(const forced_unwind&) = delete;
  forced_unwind& operator=(const forced_unwind&) = delete;

  /// Unwinds the calling context up to its run_unwindable. Ends the program with a message, and as far as the tables
  /// tell before anything is destroyed, when a frame in between is noexcept or the context is already unwinding.
  [[noreturn]] void raise();

  /// Returns the innermost one that is unwinding on this fiber or OS thread, or null.
  [[nodiscard]] static forced_unwind* of_thread() noexcept {
    return detail::unwinds_here(detail::slot_access::read).innermost;
  }
  /// Reports, once for each cancellation, that it was resisted.
  void report(const char* what) noexcept;
  /// Prints why the stack cannot be unwound, and ends the program.
  [[noreturn]] static void refuse(const char* name, const char* why) noexcept;
  /// Continues, on the caller's stack, an unwind that `run_unwindable` has met on another stack of this thread: the end
  /// of the OS thread (pthread_exit, pthread_cancel), or an exception of another language.
  [[noreturn]] static void go_on_with_foreign();
  /// Whether an unwind waits to be continued so.
  [[nodiscard]] static bool foreign_on_its_way() noexcept { return foreign_ != nullptr; }
  /// Sets the reporter; null restores the default, which writes to stderr. Returns the earlier one. Thread-safe.
  static unwind_reporter set_reporter(unwind_reporter reporter) noexcept {
    return reporter_.exchange(reporter, platform::memory_order_acq_rel);
  }

 private:
  template <class Body, class Where>
  friend ending run_unwindable(Body&& body, Where&& where);

  PIRN_AS_DEEP_AS_UNWIND static ending caught(std::exception_ptr& thrown);
  static _Unwind_Exception* caught_foreign() noexcept;
  static _Unwind_Reason_Code step(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context*,
                                  void* self);
  static void swallowed(_Unwind_Reason_Code, _Unwind_Exception* exception);
  static void terminating() noexcept;
  static void watch_terminate() noexcept;

  _Unwind_Exception exception_{};  // first: `swallowed` gets its address
  const char* name_;
  exception_globals cancellers_;
  void* set_aside_ = nullptr;  // exceptions that the context had caught
  unsigned uncaught_ = 0;      // as of the last frame that the unwinder visited; 0 after an answer to the unwind
  bool reported_ = false;
  bool resisting_ = false;  // it suspended while it was being unwound
  forced_unwind* outer_ = nullptr;

  static constexpr const char* resisting =
      "it suspended again while it was being unwound, in a destructor that the unwind runs or under noexcept: no "
      "exception can leave that code, noexcept(false) or not, so it must not suspend there";
  static inline platform::atomic<unwind_reporter> reporter_{nullptr};
  static inline std::terminate_handler earlier_terminate_ = nullptr;
  static inline constinit thread_local _Unwind_Exception* foreign_ = nullptr;  // on its way to another stack
};

/// Calls `body` and returns how it ended. For an exception of the body it calls `where`, which returns the
/// exception_ptr to which the exception is moved. The caller must not be noexcept.
template <class Body, class Where>
PIRN_ALWAYS_INLINE ending run_unwindable(Body&& body, Where&& where) {
  try {
    std::forward<Body>(body)();
    return ending::returned;
  } catch (...) {
    return forced_unwind::caught(where());
  }
}
template <class Body>
PIRN_ALWAYS_INLINE ending run_unwindable(Body&& body, std::exception_ptr& thrown) {
  return run_unwindable(std::forward<Body>(body), [&]() -> std::exception_ptr& { return thrown; });
}

// ---- cold code --------------------------------------------------------------------------------------------------

PIRN_COLD inline void forced_unwind::refuse(const char* name, const char* why) noexcept {
  for (const char* const part : {"pirn: \"", name, "\" cannot be unwound: ", why, "\n"}) {
    std::fputs(part, stderr);  // fprintf would take 8 KB of a stack that may be small
  }
  std::abort();
}

PIRN_COLD inline void forced_unwind::report(const char* what) noexcept {
  if (std::exchange(reported_, true)) {
    return;
  }
  char line[256];
  std::snprintf(line, sizeof line, "pirn: while \"%s\" was being unwound, %s", name_, what);
  if (const unwind_reporter reporter = reporter_.load(platform::memory_order_acquire); reporter != nullptr) {
    reporter(line);
  } else {
    std::fputs(line, stderr);
    std::fputc('\n', stderr);
  }
}

// clang's noexcept looks like a catch block in the tables, and a destructor may itself call std::terminate: cases that
// the walk did not foresee end here.
inline void forced_unwind::terminating() noexcept {
  const forced_unwind* const self = of_thread();
  if (self != nullptr && std::current_exception() == nullptr) {
    refuse(self->name_,
           self->resisting_
               ? resisting
               : "it is suspended under noexcept, in a destructor for example. All code that may suspend must be able "
                 "to throw (noexcept(false)), or the body must be resumed to its end before it is destroyed");
  }
  if (earlier_terminate_ != nullptr) {
    earlier_terminate_();
  }
  std::abort();
}

inline void forced_unwind::watch_terminate() noexcept {
  static const bool once = [] {
    earlier_terminate_ = std::get_terminate();
    std::set_terminate(&terminating);
    return true;
  }();
  static_cast<void>(once);
}

inline _Unwind_Reason_Code forced_unwind::step(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
                                               _Unwind_Context*, void* self) {
  auto& unwind = *static_cast<forced_unwind*>(self);
  if ((actions & _UA_END_OF_STACK) != 0) {
    refuse(unwind.name_, "its entry function does not support unwinding");
  }
  // Between two frames only the unwind is in flight: libstdc++ counts it once more for each block that rethrows it.
  unwind.uncaught_ = exception_globals::of_thread().uncaught = 1;
  return _URC_NO_REASON;
}

// An unwind leaves this frame behind, and its poison would stay for the next code on that stack.
[[gnu::no_sanitize_address]] PIRN_COLD inline void forced_unwind::raise() {
  watch_terminate();
  exception_globals& globals = exception_globals::of_thread();
  const bool again = of_thread() == this;  // it suspended while it was being unwound, or comes from another stack
  if (globals.uncaught != 0 && !(again && globals.uncaught == uncaught_)) {
    refuse(name_, "it is suspended in a destructor that is itself run by an exception");
  }
  resisting_ = again && globals.uncaught != 0;
  const std::uintptr_t barrier = detail::noexcept_caller();
  if (barrier != 0 && resisting_) {
    refuse(name_, resisting);
  }
  if (barrier != 0) {
    char why[160];
    std::snprintf(why, sizeof why, "it is suspended under noexcept, in the function at 0x%zx (a destructor?)",
                  static_cast<std::size_t>(barrier));
    refuse(name_, why);
  }
  // The runtime refuses to catch a foreign exception beside others. The end of a catch block finds no exception then.
  if (!again) {
    set_aside_ = globals.caught;
    outer_ = std::exchange(detail::unwinds_here(detail::slot_access::write).innermost, this);
    exception_.exception_cleanup = &swallowed;
  } else if (uncaught_ == 0 && set_aside_ == nullptr) {
    set_aside_ = globals.caught;  // it suspended in the handler of its answer
  }
  globals.caught = nullptr;
  globals.uncaught = 1;
  _Unwind_ForcedUnwind(&exception_, reinterpret_cast<_Unwind_Stop_Fn>(&step), this);
  refuse(name_, "a frame on its stack has no unwind tables");
}

// Called by the end of a catch block that did not rethrow.
[[gnu::no_sanitize_address]] inline void forced_unwind::swallowed(_Unwind_Reason_Code, _Unwind_Exception* exception) {
  auto& unwind = *reinterpret_cast<forced_unwind*>(exception);
  exception_globals& globals = exception_globals::of_thread();
  globals.caught = nullptr;
  if (globals.uncaught != unwind.uncaught_) {
    unwind.report("a catch block threw another exception instead of rethrowing");
    --globals.uncaught;  // the other exception serves as well: when it is handled, nothing is in flight any more
    unwind.uncaught_ = 0;
    return;
  }
  unwind.report("a catch (...) block ended without `throw;`: the unwind continues regardless");
  _Unwind_ForcedUnwind(exception, reinterpret_cast<_Unwind_Stop_Fn>(&step), &unwind);
  refuse(unwind.name_, "a frame on its stack has no unwind tables");
}

PIRN_COLD inline forced_unwind::~forced_unwind() {
  if (of_thread() == this) {
    detail::unwinds_here(detail::slot_access::write).innermost = outer_;
    exception_globals::of_thread().caught = set_aside_;
    // Read anew each time: the destructor of a caught exception may suspend its fiber, and return on another thread.
    while (exception_globals::of_thread().caught != nullptr) {
      abi::__cxa_end_catch();
    }
  }
  exception_globals::of_thread() = cancellers_;
}

/// Returns the exception of the innermost catch block, which is no C++ exception. The header that the runtime has made
/// for it ends where the unwinder's does.
PIRN_COLD inline _Unwind_Exception* forced_unwind::caught_foreign() noexcept {
  struct header {
#if defined(_LIBCPP_VERSION)
    void* counted[2];
#endif
    void* handlers_and_next[5];
    int counts[2];
    void* found[4];
    _Unwind_Exception unwinders;
  };
  return &static_cast<header*>(exception_globals::of_thread().caught)->unwinders;
}

PIRN_COLD inline ending forced_unwind::caught(std::exception_ptr& thrown) {
  thrown = std::current_exception();
  if (thrown != nullptr) {
    return ending::threw;
  }
  _Unwind_Exception* const what = caught_foreign();
  const forced_unwind* const innermost = of_thread();
  if (innermost == nullptr || what != &innermost->exception_) {
    if (innermost != nullptr) {
      refuse(innermost->name_, "its thread ends (pthread_exit or pthread_cancel) in a destructor that the unwind runs");
    }
    foreign_ = what;
    exception_globals::of_thread().caught = nullptr;  // the end of this catch block finds nothing
    return ending::threw;
  }
  exception_globals::of_thread() = {};  // the end of this catch block finds nothing
  return ending::unwound;
}

PIRN_COLD inline void forced_unwind::go_on_with_foreign() {
  _Unwind_Exception* const what = std::exchange(foreign_, nullptr);
  if (what == nullptr) {
    refuse("the body of a coroutine", "it ended with an exception that cannot be found any more");
  }
  if (what->private_1 != 0) {  // by this the unwinder marks a forced unwind
    _Unwind_ForcedUnwind(what, reinterpret_cast<_Unwind_Stop_Fn>(what->private_1),
                         reinterpret_cast<void*>(what->private_2));
  } else {
    _Unwind_RaiseException(what);
  }
  refuse("the thread that runs a coroutine",
         "its end (by pthread_exit or pthread_cancel in the body) or an exception of another language finds no frame "
         "from which it can continue");
}

namespace detail {

/// Throws the exception that ended a body on the stack of its resumer, also where that is the end of the thread.
[[noreturn]] PIRN_COLD inline void rethrow_of_body(std::exception_ptr what) {
  if (what == nullptr) {
    forced_unwind::go_on_with_foreign();
  }
  std::rethrow_exception(std::move(what));
}

/// Returns the exception that ended a body; called in its handler. Only a C++ exception may end such a body, which the
/// runtime's worker threads run.
[[nodiscard]] PIRN_COLD inline std::exception_ptr exception_of(const char* body) noexcept {
  std::exception_ptr what = std::current_exception();
  if (what == nullptr) {
    for (const char* const part :
         {"pirn: ", body,
          " was left by pthread_exit, pthread_cancel or an exception of another language. The thread also runs other "
          "code and must not end this way: end the fiber, or the call, by returning from it\n"}) {
      std::fputs(part, stderr);
    }
    std::abort();
  }
  return what;
}

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
