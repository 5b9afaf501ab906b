// How a suspended context that nobody will resume any more takes down its stack.
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
#include "pirn/context/detail/of_fiber.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/exceptions.hpp"  // IWYU pragma: keep
#include "pirn/detail/platform.hpp"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the Itanium ABI's
extern "C" void* pirn_exception_globals() noexcept asm("__cxa_get_globals");

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// What the C++ runtime keeps per OS thread about exceptions in flight (Itanium C++ ABI, 2.2.2): the list of caught
/// ones and the count of those thrown and not yet caught.
struct exception_globals {
  void* caught = nullptr;
  unsigned uncaught = 0;

  /// Those of the calling OS thread. Valid until it ends.
  [[nodiscard]] static exception_globals& of_thread() noexcept {
    return *static_cast<exception_globals*>(pirn_exception_globals());
  }
  /// Not zero if any are in flight.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::uintptr_t bits() const noexcept {
    return reinterpret_cast<std::uintptr_t>(caught) | uncaught;
  }
};

/// Receives one line, without a line feed, about an unwind that was resisted. May be called on any stack.
using unwind_reporter = void (*)(const char* line) noexcept;

/// How a body ended.
enum class ending : std::uint8_t {
  returned,
  threw,    ///< an exception of the body's own; null for the end of the OS thread, see rethrow_of_body
  unwound,  ///< by forced_unwind::raise
};

/// One cancellation. Lives in the frame of the canceller, who waits meanwhile; both run on the same OS thread.
/// Constructing it takes the thread's exceptions in flight away from the canceller, destroying it gives them back.
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

  /// The innermost one that is unwinding on this fiber or OS thread, or null.
  [[nodiscard]] static forced_unwind* of_thread() noexcept { return detail::unwinds_here(false).innermost; }
  /// Says, once for each cancellation, that it was resisted.
  void report(const char* what) noexcept;
  /// Says why the stack cannot be unwound, and ends the program.
  [[noreturn]] static void refuse(const char* name, const char* why) noexcept;
  /// Goes on, on the caller's stack, with what ends the OS thread (pthread_exit, pthread_cancel), or with an exception
  /// of another language, that `run_unwindable` has met on another stack of this thread.
  [[noreturn]] static void go_on_with_foreign();
  /// Whether there is such a one.
  [[nodiscard]] static bool foreign_on_its_way() noexcept { return foreign_ != nullptr; }
  /// Sets who is told; null puts the default back, which writes to stderr. Returns the earlier. Thread-safe.
  static unwind_reporter set_reporter(unwind_reporter reporter) noexcept {
    return reporter_.exchange(reporter, platform::memory_order_acq_rel);
  }

 private:
  template <class Body, class Where>
  friend ending run_unwindable(Body&& body, Where&& where);

  static ending caught(std::exception_ptr& thrown);
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
  unsigned uncaught_ = 0;      // as of the last frame that the unwinder looked at; 0 after an answer to the unwind
  bool reported_ = false;
  bool resisting_ = false;  // it suspended while it was being unwound
  forced_unwind* outer_ = nullptr;

  static constexpr const char* resisting =
      "while it was being unwound it suspended again, in a destructor that the unwind runs or under noexcept: nothing "
      "can be thrown out of there, noexcept(false) or not, so it must not suspend there";
  static inline platform::atomic<unwind_reporter> reporter_{nullptr};
  static inline std::terminate_handler earlier_terminate_ = nullptr;
  static inline constinit thread_local _Unwind_Exception* foreign_ = nullptr;  // on its way to another stack
};

/// Calls `body` and says how it ended; for an exception of its own `where` is called and gives the exception_ptr to
/// which it is moved. The caller must not be noexcept.
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

// clang's noexcept looks like a catch block in the tables, and a destructor may call std::terminate by itself: whatever
// the walk did not foresee ends here.
inline void forced_unwind::terminating() noexcept {
  const forced_unwind* const self = of_thread();
  if (self != nullptr && std::current_exception() == nullptr) {
    refuse(self->name_, self->resisting_ ? resisting
                                         : "it is suspended under noexcept, in a destructor for example. Everything "
                                           "that may suspend must be able to throw: noexcept(false), or resume it to "
                                           "its end before destroying it");
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
    refuse(unwind.name_, "its entry function is not an unwindable one");
  }
  // The unwind alone is on its way between two frames: libstdc++ counts it once more for each block that rethrows it.
  unwind.uncaught_ = exception_globals::of_thread().uncaught = 1;
  return _URC_NO_REASON;
}

// An unwind leaves this frame behind, and its poison would stay for who runs there next.
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
  // The runtime refuses to catch a foreign exception beside others, and what ends a catch block finds nothing then.
  if (!again) {
    set_aside_ = globals.caught;
    outer_ = std::exchange(detail::unwinds_here(true).innermost, this);
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
    --globals.uncaught;  // that one is on its way, and as good: when it is handled, nothing is in flight any more
    unwind.uncaught_ = 0;
    return;
  }
  unwind.report("a catch (...) block ended without `throw;`: the unwind goes on regardless");
  _Unwind_ForcedUnwind(exception, reinterpret_cast<_Unwind_Stop_Fn>(&step), &unwind);
  refuse(unwind.name_, "a frame on its stack has no unwind tables");
}

PIRN_COLD inline forced_unwind::~forced_unwind() {
  if (of_thread() == this) {
    detail::unwinds_here(true).innermost = outer_;
    exception_globals::of_thread().caught = set_aside_;
    // Asked anew each time: the destructor of what was caught may suspend its fiber, and come back on another thread.
    while (exception_globals::of_thread().caught != nullptr) {
      abi::__cxa_end_catch();
    }
  }
  exception_globals::of_thread() = cancellers_;
}

/// What the innermost catch block has, which is no C++ exception. The header that the runtime has made up for it ends
/// where the unwinder's does.
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
  exception_globals::of_thread() = {};  // the same
  return ending::unwound;
}

PIRN_COLD inline void forced_unwind::go_on_with_foreign() {
  _Unwind_Exception* const what = std::exchange(foreign_, nullptr);
  if (what == nullptr) {
    refuse("the body of a coroutine", "it has ended by an exception that is not there");
  }
  if (what->private_1 != 0) {  // how the unwinder keeps what makes an unwind a forced one
    _Unwind_ForcedUnwind(what, reinterpret_cast<_Unwind_Stop_Fn>(what->private_1),
                         reinterpret_cast<void*>(what->private_2));
  } else {
    _Unwind_RaiseException(what);
  }
  refuse("the thread that runs a coroutine",
         "its end, by pthread_exit or pthread_cancel in the body, or an exception of another language meets no frame "
         "that it can go on from");
}

namespace detail {

/// Throws what ended a body on the stack of who resumed it: also where that is the end of the thread.
[[noreturn]] PIRN_COLD inline void rethrow_of_body(std::exception_ptr what) {
  if (what == nullptr) {
    forced_unwind::go_on_with_foreign();
  }
  std::rethrow_exception(std::move(what));
}

/// What ended a body that nothing but a C++ exception may end, as the runtime's worker threads run it: in its handler.
[[nodiscard]] PIRN_COLD inline std::exception_ptr exception_of(const char* body) noexcept {
  std::exception_ptr what = std::current_exception();
  if (what == nullptr) {
    for (const char* const part :
         {"pirn: ", body,
          " was left by pthread_exit, pthread_cancel or an exception of another language. The thread "
          "runs others too and must not end so: end the fiber, or the call, by returning from it\n"}) {
      std::fputs(part, stderr);
    }
    std::abort();
  }
  return what;
}

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
