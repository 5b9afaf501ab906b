#include "detail/exiting.hpp"

#include <unwind.h>

#include <cstdlib>

namespace pirn::inline PIRN_ABI::platform {

// A function given to atexit could say it only to those that are destroyed after it: a static runtime is not, since it
// registers its own end once it is made.
bool exiting() noexcept {
  bool found = false;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* result) {
        if (_Unwind_GetRegionStart(frame) != reinterpret_cast<_Unwind_Ptr>(&std::exit)) {
          return _URC_NO_REASON;
        }
        *static_cast<bool*>(result) = true;
        return _URC_END_OF_STACK;
      },
      &found);
  return found;
}

}  // namespace pirn::inline PIRN_ABI::platform
