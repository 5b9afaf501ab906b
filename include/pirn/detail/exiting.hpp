// Finds out whether the process is ending. A destructor asks this when it finds its object still in use.
#pragma once

#include <dlfcn.h>
#include <unwind.h>

#include <cstdlib>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Returns whether the frame of `exit` is on the stack of the caller. Walks the stack, which takes some microseconds.
// A function given to atexit could tell this only to objects that are destroyed after it has run. A static runtime is
// destroyed before, since its destructor is registered later, once the runtime is constructed.
[[nodiscard, gnu::cold, gnu::noinline]] inline bool called_by_exit() noexcept {
  struct search {
    // In a program without -fPIE this may be the address of a jump to exit.
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

/// Returns `exiting()` of the library, which knows more. Its address is null in a program that uses no part of the
/// library that asks.
[[nodiscard]] bool exiting_if_linked() noexcept __attribute__((weak));

/// Returns whether the caller runs inside of `exit`. Then a running body stays as it is: it has called `exit`, or it
/// waits for a body that has. Walks the stack, so it is meant for callers that would otherwise end the process with a
/// message.
[[nodiscard, gnu::cold, gnu::noinline]] inline bool left_to_exit() noexcept {
  return &exiting_if_linked != nullptr ? exiting_if_linked() : called_by_exit();
}

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
