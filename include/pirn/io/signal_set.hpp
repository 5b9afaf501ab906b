// Signals as something that a fiber waits for.
#pragma once

#include <signal.h>

#include <initializer_list>

#include "pirn/io/descriptor.hpp"

namespace pirn::inline PIRN_ABI {

/// Takes signals away from their handlers (it blocks them in the calling thread) and hands them to `wait`. Make it
/// before any other thread is started, so before the runtime, since threads inherit what is blocked.
class signal_set {
 public:
  /// For instance {SIGINT, SIGTERM}. Throws std::system_error.
  signal_set(std::initializer_list<int> signals);
  /// Discards what has arrived and nobody has taken, and unblocks what the constructor blocked; on the same thread.
  ~signal_set();
  signal_set(const signal_set&) = delete;
  signal_set& operator=(const signal_set&) = delete;

  /// Suspends until one of the signals arrives, and returns its number. Any fiber or thread.
  [[nodiscard]] result<int> wait(platform::time_point deadline = platform::never) noexcept;

 private:
  ::sigset_t wanted_;
  ::sigset_t before_;
  descriptor source_;
};

}  // namespace pirn::inline PIRN_ABI
