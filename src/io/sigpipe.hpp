// Suppresses SIGPIPE during a system call that has no flag against it.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Makes one call that moves `size` bytes. SIGPIPE is blocked in this thread meanwhile, and taken away if the call has
/// raised it, which a call that blocks may do after it has moved a part. Another one that was pending before stays.
template <class Call>
std::int64_t without_sigpipe(std::size_t size, Call call) noexcept {
  ::sigset_t pipe_signal;
  ::sigset_t before;
  ::sigset_t pending;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const bool was_blocked = ::sigismember(&before, SIGPIPE) == 1;
  const bool was_pending = was_blocked && ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
  const std::int64_t outcome = call();
  if (outcome != static_cast<std::int64_t>(size) && !was_pending) {
    const ::timespec at_once{};
    while (::sigtimedwait(&pipe_signal, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  if (!was_blocked) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return outcome;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
