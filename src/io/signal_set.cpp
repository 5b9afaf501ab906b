// Implements signal_set: one handler for all sets counts the signals, and an eventfd wakes the waiters.
#include "pirn/io/signal_set.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr int signals = NSIG;
// ThreadSanitizer delays a handler until its thread calls a function that it intercepts, which a sleeping thread does
// not do. There the signals are blocked as well, and read in `wait`.
#if defined(PIRN_TSAN)
constexpr bool handlers_wait = true;
#else
constexpr bool handlers_wait = false;
#endif

std::system_error failure(int number, const char* what) { return {number, std::system_category(), what}; }

}  // namespace

struct signal_set::state {
  struct taken {
    int number;
    struct ::sigaction before;
  };
  ~state() { give_back(); }
  void take(int number);
  void give_back() noexcept;
  [[nodiscard]] int take_one() noexcept;
  static void handle(int number) noexcept;

  ::pid_t process = ::getpid();
  ::sigset_t wanted;
  descriptor source;                                 ///< an eventfd that counts the signals in `arrived`
  platform::atomic<std::uint32_t> arrived[signals];  ///< since they were last taken, by number
  std::vector<taken> all;

  static inline platform::atomic<state*> owners[signals] = {};
  static inline platform::atomic<int> handlers_inside{0};
};

// Runs on any thread, between any two instructions. The objects that it uses live as long as it is counted.
void signal_set::state::handle(int number) noexcept {
  const int error = errno;
  handlers_inside.fetch_add(1, platform::memory_order_seq_cst);
  if (state* const mine = owners[number].load(platform::memory_order_seq_cst)) {
    if (mine->process == ::getpid()) {
      mine->arrived[number].fetch_add(1, platform::memory_order_release);
      const std::uint64_t one = 1;
      static_cast<void>(::write(mine->source.native(), &one, sizeof one));
    } else {
      // A child between fork and exec: the parent must not see this signal. The signal has its default effect.
      ::signal(number, SIG_DFL);
      ::raise(number);
    }
  }
  handlers_inside.fetch_sub(1, platform::memory_order_seq_cst);
  errno = error;
}

void signal_set::state::take(int number) {
  state* other = owners[number].load(platform::memory_order_seq_cst);
  if (other == this) {
    return;
  }
  // In a child the parent's signal sets have no owner.
  const bool inherited = other != nullptr && other->process != process;
  if ((other != nullptr && !inherited) ||
      !owners[number].compare_exchange_strong(other, this, platform::memory_order_seq_cst)) {
    throw failure(EBUSY, "pirn: another signal_set already handles the signal");
  }
  all.push_back({number, {}});  // there is room
  struct ::sigaction ours{};
  ours.sa_handler = handle;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigfillset(&ours.sa_mask);
  if (::sigaction(number, &ours, &all.back().before) != 0) {
    const int refused = errno;
    all.pop_back();
    owners[number].store(nullptr, platform::memory_order_seq_cst);
    throw failure(refused, "pirn: cannot handle a signal");
  }
  if (inherited) {
    const auto same = [number](const taken& each) { return each.number == number; };
    all.back().before = std::find_if(other->all.begin(), other->all.end(), same)->before;
  }
}

void signal_set::state::give_back() noexcept {
  for (const taken& each : all) {
    if (owners[each.number].load(platform::memory_order_seq_cst) == this) {
      ::sigaction(each.number, &each.before, nullptr);
      owners[each.number].store(nullptr, platform::memory_order_seq_cst);
    }
  }
  all.clear();
  // In a child the threads that were in a handler at the fork do not exist.
  while (process == ::getpid() && handlers_inside.load(platform::memory_order_seq_cst) != 0) {
    platform::yield_thread();
  }
}

int signal_set::state::take_one() noexcept {
  // One of the signals counted before belongs to the caller, but others may take it while the caller searches.
  for (;;) {
    for (int number = 1; number < signals; ++number) {
      std::uint32_t there = arrived[number].load(platform::memory_order_acquire);
      while (there != 0) {
        if (arrived[number].compare_exchange_weak(there, there - 1, platform::memory_order_acq_rel)) {
          return number;
        }
      }
    }
  }
}

signal_set::signal_set(std::initializer_list<int> wanted) : state_(std::make_unique<state>()) {
  state_->all.reserve(wanted.size());
  ::sigemptyset(&state_->wanted);
  for (const int number : wanted) {
    if (::sigaddset(&state_->wanted, number) != 0) {
      throw failure(errno, "pirn: no such signal");
    }
  }
  state_->source = descriptor(handlers_wait ? ::signalfd(-1, &state_->wanted, SFD_NONBLOCK | SFD_CLOEXEC)
                                            : ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE));
  if (!state_->source.is_open()) {
    throw failure(errno, "pirn: cannot watch for signals");
  }
  for (const int number : wanted) {
    state_->take(number);
  }
  ::pthread_sigmask(handlers_wait ? SIG_BLOCK : SIG_UNBLOCK, &state_->wanted, nullptr);
}

signal_set::~signal_set() {
  if (handlers_wait) {
    const timespec at_once{};
    while (::sigtimedwait(&state_->wanted, nullptr, &at_once) > 0) {
    }
    ::pthread_sigmask(SIG_UNBLOCK, &state_->wanted, nullptr);
  }
}

result<int> signal_set::wait(time_limit deadline) noexcept {
  if (handlers_wait) {
    ::signalfd_siginfo told{};
    const auto got = state_->source.read(&told, sizeof told, deadline);
    return got ? result<int>(static_cast<int>(told.ssi_signo)) : fail(got.error());
  }
  std::uint64_t one = 0;
  if (const auto got = state_->source.read(&one, sizeof one, deadline); !got) {
    return fail(got.error());
  }
  return state_->take_one();
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
