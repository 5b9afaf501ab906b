#include "detail/exiting.hpp"

#include <dlfcn.h>
#include <unwind.h>

#include <atomic>
#include <cstdlib>

#include "pirn/detail/exiting.hpp"

namespace pirn::inline PIRN_ABI::platform {

namespace {

// A function given to atexit could say it only to those that are destroyed after it: a static runtime is not, since it
// registers its own end once it is made.
bool called_by_exit() noexcept {
  struct search {
    // The address of exit may be that of a jump to it, in a program without -fPIE.
    _Unwind_Ptr exit = reinterpret_cast<_Unwind_Ptr>(&std::exit);
    _Unwind_Ptr behind_the_jump = reinterpret_cast<_Unwind_Ptr>(::dlsym(RTLD_NEXT, "exit"));
    bool found = false;
  } here;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* raw) {
        auto& wanted = *static_cast<search*>(raw);
        const _Unwind_Ptr function = _Unwind_GetRegionStart(frame);
        if (function == 0 || (function != wanted.exit && function != wanted.behind_the_jump)) {
          return _URC_NO_REASON;
        }
        wanted.found = true;
        return _URC_END_OF_STACK;
      },
      &here);
  return here.found;
}

// What is made while exit runs its last functions is destroyed by the end of its program or library, whose code is part
// of the compiler and has no unwind tables: the frame of exit is not found behind it. Any function given to atexit has
// run by then. It looks itself, since it is also called when a library that contains this is unloaded.
constinit std::atomic<bool> exit_has_begun = false;
[[maybe_unused]] const int registered =
    std::atexit([] { exit_has_begun.store(called_by_exit(), std::memory_order_relaxed); });

}  // namespace

bool exiting() noexcept { return exit_has_begun.load(std::memory_order_relaxed) || called_by_exit(); }
bool exiting_if_linked() noexcept { return exiting(); }

}  // namespace pirn::inline PIRN_ABI::platform
