// The question that preemption asks the dispatcher.
#pragma once

#include "usched.h"

namespace pirn_usched {

/// Returns the running thread of the calling OS thread or fiber, if `sp` is on its stack; else null. May be called by a
/// signal handler where neither the dispatcher nor malloc was interrupted.
[[nodiscard]] ustack* thread_at(const void* sp) noexcept;
/// Returns whether the caller is a fiber, which may be on another OS thread when a thread is back.
[[nodiscard]] bool in_fiber() noexcept;

}  // namespace pirn_usched
