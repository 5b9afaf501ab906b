// The question that preemption asks the dispatcher.
#pragma once

#include "usched.h"

namespace pirn_usched {

/// Returns the running thread of the calling OS thread, if `sp` is on its stack; else null. Async-signal-safe wherever
/// the dispatcher itself was not interrupted.
[[nodiscard]] ustack* thread_at(const void* sp) noexcept;

}  // namespace pirn_usched
