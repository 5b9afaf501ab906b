// The outermost frame of the stack on which a function runs, which shows whose stack that is.
#pragma once

#include <unwind.h>

#include <cstdint>

#include "pirn/context/arch.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Where a walk of a stack ends: at the root of its context, or of its thread, or where a frame has no unwind tables.
struct outermost_frame {
  std::uintptr_t pc = 0;
  std::uintptr_t sp = 0;  ///< above the frame

  /// Whether it is the root frame of a context.
  [[nodiscard]] bool is_root() const noexcept {
    return pc == reinterpret_cast<std::uintptr_t>(arch::detail::entry_plus_8(&arch::root_frame));
  }
};

/// Returns the outermost frame of the caller's stack. A walk of it: two microseconds.
PIRN_COLD PIRN_AS_DEEP_AS_UNWIND inline outermost_frame find_outermost_frame() noexcept {
  outermost_frame last;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* found) {
        if (_Unwind_GetIP(frame) != 0) {
          *static_cast<outermost_frame*>(found) = {_Unwind_GetIP(frame), _Unwind_GetCFA(frame)};
        }
        return _URC_NO_REASON;
      },
      &last);
  return last;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
