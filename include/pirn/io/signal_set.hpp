// Signals that a fiber can wait for.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <memory>

#include "pirn/io/descriptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Replaces the previous effect of signals (an end of the process, a handler) and passes them to `wait`. Its
/// handler notes them, on any thread. No signal is blocked, so processes started meanwhile are unaffected: there the
/// signals have their default effect. System calls that a signal interrupts are restarted where the kernel does that
/// (SA_RESTART); others, for instance `::poll`, end with EINTR. Any thread may make and destroy it, at any time. (Under
/// ThreadSanitizer only before other threads are started: it delays handlers, so the signals are blocked there.)
class signal_set {
 public:
  /// Takes signals, for instance {SIGINT, SIGTERM}. Unblocks them in the calling thread. Throws std::system_error:
  /// invalid_argument for a number that is not a signal or cannot be taken, device_or_resource_busy for a signal that
  /// another signal_set has.
  signal_set(std::initializer_list<int> signals);
  /// Discards signals that have arrived and were not taken, and restores their previous effect. No caller may be in
  /// `wait`.
  ~signal_set();
  signal_set(const signal_set&) = delete;
  signal_set& operator=(const signal_set&) = delete;

  /// Suspends until one of the signals arrives, and returns its number. A signal that has arrived several times is
  /// returned as often. Any fiber or thread may call it.
  [[nodiscard]] result<int> wait(time_limit deadline = platform::never) noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
