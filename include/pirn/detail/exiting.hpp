// Whether what a destructor finds in use is so because the process ends.
#pragma once

#include <dlfcn.h>
#include <unwind.h>

#include <cstdlib>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Whether the frame of `exit` is among those that the caller waits in. Walks the stack, some microseconds.
// A function given to atexit could say it only to those that are destroyed after it: a static runtime is not, since it
// registers its own end once it is made.
[[nodiscard, gnu::cold, gnu::noinline]] inline bool called_by_exit() noexcept {
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

/// `exiting` of the library, which knows more; null in a program that uses nothing of it that asks.
[[nodiscard]] bool exiting_if_linked() noexcept __attribute__((weak));

/// Whether the caller is part of `exit`, so that what runs stays as it is: its body has called `exit`, or waits for one
/// that has. Walks the stack: for those who would otherwise end the process with a message.
[[nodiscard, gnu::cold, gnu::noinline]] inline bool left_to_exit() noexcept {
  return &exiting_if_linked != nullptr ? exiting_if_linked() : called_by_exit();
}

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
