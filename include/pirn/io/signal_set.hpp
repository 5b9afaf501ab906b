// Signals as something that a fiber waits for.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <memory>

#include "pirn/io/descriptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Takes signals away from what they did before (an end of the process, a handler) and hands them to `wait`. A handler
/// of its own notes them, on whichever thread they come; no signal is blocked, so that processes which are started
/// meanwhile are none the worse: in those the signals do what they do by default. System calls that a signal interrupts
/// are restarted where the kernel does that (SA_RESTART); others, for instance ::poll, end with EINTR. Any thread may
/// make it and destroy it, at any time. (Under ThreadSanitizer only before other threads are started: it lets handlers
/// wait, so the signals are blocked there.)
class signal_set {
 public:
  /// For instance {SIGINT, SIGTERM}. Unblocks them in the calling thread. Throws std::system_error: invalid_argument
  /// for what is no signal or cannot be taken, device_or_resource_busy for one that another signal_set has.
  signal_set(std::initializer_list<int> signals);
  /// Discards what has arrived and nobody has taken; from then on the signals do what they did before. Nobody may be in
  /// `wait`.
  ~signal_set();
  signal_set(const signal_set&) = delete;
  signal_set& operator=(const signal_set&) = delete;

  /// Suspends until one of the signals arrives, and returns its number. One that has arrived several times is returned
  /// as often. Any fiber or thread.
  [[nodiscard]] result<int> wait(time_limit deadline = platform::never) noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
