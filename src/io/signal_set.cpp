#include "pirn/io/signal_set.hpp"

#include <pthread.h>
#include <sys/signalfd.h>

#include <cerrno>

namespace pirn::inline PIRN_ABI {

signal_set::signal_set(std::initializer_list<int> signals) {
  ::sigemptyset(&wanted_);
  for (const int number : signals) {
    if (::sigaddset(&wanted_, number) != 0) {
      throw std::system_error(errno, std::system_category(), "pirn: no such signal");
    }
  }
  source_ = descriptor(::signalfd(-1, &wanted_, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!source_.is_open()) {
    throw std::system_error(errno, std::system_category(), "pirn: cannot watch for signals");
  }
  if (const int refused = ::pthread_sigmask(SIG_BLOCK, &wanted_, &before_)) {
    throw std::system_error(refused, std::system_category(), "pirn: cannot block signals");
  }
}

signal_set::~signal_set() {
  // A second ^C during a graceful end must not turn it into a death by signal at the very last moment.
  const timespec at_once{};
  while (::sigtimedwait(&wanted_, nullptr, &at_once) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

result<int> signal_set::wait(platform::time_point deadline) noexcept {
  signalfd_siginfo arrived{};
  const auto got = source_.read(&arrived, sizeof arrived, deadline);
  if (!got) {
    return fail(got.error());
  }
  return static_cast<int>(arrived.ssi_signo);
}

}  // namespace pirn::inline PIRN_ABI
