// Backtraces of suspended contexts, without resuming them.
#pragma once

#include <unwind.h>

#include "pirn/context/arch.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

namespace detail {
struct walk_filter {
  _Unwind_Trace_Fn step;
  void* argument;
  bool in_suspended = false;
};

inline _Unwind_Reason_Code skip_walker(_Unwind_Context* frame, void* raw) {
  auto* filter = static_cast<walk_filter*>(raw);
  if (!filter->in_suspended) {
    filter->in_suspended = _Unwind_GetRegionStart(frame) == reinterpret_cast<word>(&walk_as_if_called_by);
    return _URC_NO_REASON;
  }
  return filter->step(frame, filter->argument);
}

inline word walk_frames(word filter, word) {
  return static_cast<word>(_Unwind_Backtrace(&skip_walker, reinterpret_cast<void*>(filter)));
}
}  // namespace detail

/// Walks the frames of a suspended context, innermost first, with the signature and the result of
/// `_Unwind_Backtrace`: `step` sees the function that switched away first and the root frame last (for a fresh
/// context that is all), then once an address of 0. The context must not be resumed meanwhile. Async-signal-safe as
/// far as the unwinder is (glibc >= 2.35 finds tables without a lock).
inline _Unwind_Reason_Code backtrace_suspended(const context* suspended, _Unwind_Trace_Fn step, void* argument) {
  detail::walk_filter filter{step, argument};
  return static_cast<_Unwind_Reason_Code>(
      detail::walk_as_if_called_by(suspended, reinterpret_cast<word>(&filter), 0, &detail::walk_frames));
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
