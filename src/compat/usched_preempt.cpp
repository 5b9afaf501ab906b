// Preemption of usched's threads by a timer's signal.
//
// The handler runs on the stack of the interrupted thread, and blocks it there: the image then holds the kernel's
// signal frame, which rt_sigreturn finds at the same address when the thread is back. So the thread resumes exactly
// where it was interrupted, with all registers. The dispatcher, malloc and other code that is not reentrant is never
// interrupted in this way, since only functions that the program has marked may be the innermost one.
#include "compat/usched_preempt.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "pirn/coro/detail/interrupted_thread.hpp"
#include "pirn/detail/abi.hpp"

namespace {

struct place_of_signal {
  const char* pc;
  const void* sp;
};
#if defined(__x86_64__)
#define PIRN_USCHED_PREEMPTS 1
[[maybe_unused]] place_of_signal place_in(const ucontext_t& at) noexcept {
  return {reinterpret_cast<const char*>(at.uc_mcontext.gregs[REG_RIP]),
          reinterpret_cast<const void*>(at.uc_mcontext.gregs[REG_RSP])};
}
#elif defined(__i386__)
#define PIRN_USCHED_PREEMPTS 1
[[maybe_unused]] place_of_signal place_in(const ucontext_t& at) noexcept {
  return {reinterpret_cast<const char*>(at.uc_mcontext.gregs[REG_EIP]),
          reinterpret_cast<const void*>(at.uc_mcontext.gregs[REG_ESP])};
}
#elif defined(__aarch64__)
#define PIRN_USCHED_PREEMPTS 1
[[maybe_unused]] place_of_signal place_in(const ucontext_t& at) noexcept {
  return {reinterpret_cast<const char*>(at.uc_mcontext.pc), reinterpret_cast<const void*>(at.uc_mcontext.sp)};
}
#endif

#if defined(PIRN_USCHED_PREEMPTS) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)

struct preemption {
  const char* begin;
  const char* end;
  timer_t timer;
  bool armed;
  volatile std::sig_atomic_t due;  // a signal came where the thread could not be preempted
};
__attribute__((tls_model("initial-exec"))) __thread preemption here;

void block_if_asked(ustack& running) noexcept(false) {
  usched* const by = running.u_sched;
  if (by->s_preempt != nullptr && by->s_preempt(by, &running) != 0) {
    ustack_block();
  }
}

void on_signal(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const place_of_signal at = place_in(*static_cast<const ucontext_t*>(context));
  if (at.pc < here.begin || at.pc >= here.end) {
    here.due = 1;
    return;
  }
  const int kept = errno;
  ustack* const running = pirn_usched::in_fiber() ? nullptr : pirn_usched::thread_at(at.sp);
  here.due = running == nullptr ? 1 : 0;
  if (running != nullptr) {
    const pirn::detail::interrupted_thread thread(context);
    thread.take_control_words();
    block_if_asked(*running);
    thread.keep_settings();
  }
  errno = kept;
}

int error_here() noexcept { return -errno; }

int arm(int sig, long us) noexcept {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  // SA_NODEFER, since the handler may return on behalf of another thread only. Without SA_ONSTACK, since the frame
  // must be on the stack of the thread.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(sig, &action, nullptr) != 0) {
    return error_here();
  }
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = sig;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &here.timer) != 0) {
    return error_here();
  }
  const timespec period = {us / 1'000'000, us % 1'000'000 * 1000};
  const itimerspec when = {period, period};
  if (timer_settime(here.timer, 0, &when, nullptr) != 0) {
    const int error = error_here();
    timer_delete(here.timer);
    return error;
  }
  here.armed = true;
  return 0;
}

#endif

}  // namespace

extern "C" {

#if defined(PIRN_USCHED_PREEMPTS) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)

int usched_preempt_in(int sig, long us, const char* begin, const char* end) {
  const int kept = errno;
  if (here.armed) {
    timer_delete(here.timer);
    here.armed = false;
    here.due = 0;
  }
  here.begin = begin;
  here.end = end;
  const int result = us < 0 ? -EINVAL : us == 0 ? 0 : arm(sig, us);
  errno = kept;
  return result;
}

void usched_preemption_point() {
  if (here.due != 0) {
    here.due = 0;
    if (ustack* const running = pirn_usched::thread_at(__builtin_frame_address(0))) {
      block_if_asked(*running);
    }
  }
}

#else

int usched_preempt_in(int, long, const char*, const char*) { return -ENOTSUP; }
void usched_preemption_point() {}

#endif

}  // extern "C"
