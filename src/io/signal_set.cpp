#include "pirn/io/signal_set.hpp"

#include <pthread.h>
#include <sys/signalfd.h>

#include <cerrno>

namespace pirn::inline PIRN_ABI {

signal_set::signal_set(std::initializer_list<int> signals) {
  ::sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : signals) {
    if (::sigaddset(&wanted, number) != 0) {
      throw std::system_error(errno, std::system_category(), "pirn: no such signal");
    }
  }
  source_ = descriptor(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!source_.is_open()) {
    throw std::system_error(errno, std::system_category(), "pirn: cannot watch for signals");
  }
  if (const int refused = ::pthread_sigmask(SIG_BLOCK, &wanted, &before_)) {
    throw std::system_error(refused, std::system_category(), "pirn: cannot block signals");
  }
}

signal_set::~signal_set() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

result<int> signal_set::wait(platform::time_point deadline) noexcept {
  signalfd_siginfo arrived{};
  const auto got = source_.read(&arrived, sizeof arrived, deadline);
  if (!got) {
    return fail(got.error());
  }
  return static_cast<int>(arrived.ssi_signo);
}

}  // namespace pirn::inline PIRN_ABI
