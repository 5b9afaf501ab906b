// The timer that preempts swapped tasks, and the handler of its signal.
//
// The handler runs on the stack of the interrupted task and blocks it there. The image then holds the kernel's signal
// frame, which rt_sigreturn finds at the same address when the task is back: the task resumes at the interrupted
// instruction with all its registers. Another task must not run where malloc, the policy or any other code that is not
// reentrant was interrupted. So the handler acts only if the innermost function is one that the program has marked.
// Elsewhere it leaves a request for the next safe point.
#pragma once

#include <csignal>
#include <cstdint>
#include <ctime>

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "pirn/coro/detail/interrupted_thread.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform_errno.hpp"
#include "pirn/detail/time.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The program counter and stack pointer of what a signal has interrupted. They are null where the handler must not
/// block: under sanitizers, whose hooks are not async-signal-safe, and on processors that no test has covered.
struct interrupted_place {
  const char* pc = nullptr;
  const char* sp = nullptr;

  explicit interrupted_place([[maybe_unused]] const ucontext_t& at) noexcept {
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
#elif defined(__x86_64__)
    pc = reinterpret_cast<const char*>(at.uc_mcontext.gregs[REG_RIP]);
    sp = reinterpret_cast<const char*>(at.uc_mcontext.gregs[REG_RSP]);
#elif defined(__i386__)
    pc = reinterpret_cast<const char*>(at.uc_mcontext.gregs[REG_EIP]);
    sp = reinterpret_cast<const char*>(at.uc_mcontext.gregs[REG_ESP]);
#elif defined(__aarch64__)
    pc = reinterpret_cast<const char*>(at.uc_mcontext.pc);
    sp = reinterpret_cast<const char*>(at.uc_mcontext.sp);
#endif
  }
};

/// The part of a preemptive dispatcher that does not depend on its policy.
class swap_preempter {
 public:
  swap_preempter(const swap_preempter&) = delete;
  swap_preempter& operator=(const swap_preempter&) = delete;

  /// Marks a call of the policy, in which no task may be preempted.
  class policy_call {
   public:
    explicit policy_call(swap_preempter& in) noexcept : in_(in) {
      in_.in_policy_ = 1;
      asm volatile("" ::: "memory");
    }
    ~policy_call() {
      asm volatile("" ::: "memory");
      in_.in_policy_ = 0;
    }
    policy_call(const policy_call&) = delete;
    policy_call& operator=(const policy_call&) = delete;

   private:
    swap_preempter& in_;
  };

 protected:
  /// Blocks the running task if the policy says so. Returns false if it may not block at `sp`.
  using preempt_function = bool(swap_preempter& self, const char* sp) noexcept;

  swap_preempter(int signal, platform::duration every, const char* begin, const char* end,
                 preempt_function* preempt) noexcept
      : begin_(begin), end_(end), preempt_(preempt), every_(every), signal_(signal) {}
  ~swap_preempter() = default;

  /// A timer of the calling OS thread while it lives.
  class timer_of_thread {
   public:
    explicit timer_of_thread(swap_preempter& of) noexcept {
      if (of.every_ > platform::duration::zero()) {
        here = &of;
        state_ = of.start(timer_) ? state::runs : state::refused;
      }
    }
    ~timer_of_thread() {
      if (state_ == state::runs) {
        timer_delete(timer_);
      }
      if (state_ != state::off) {
        here = nullptr;
      }
    }
    timer_of_thread(const timer_of_thread&) = delete;
    timer_of_thread& operator=(const timer_of_thread&) = delete;
    [[nodiscard]] bool refused() const noexcept { return state_ == state::refused; }

   private:
    enum class state : std::uint8_t { off, runs, refused };
    timer_t timer_{};
    state state_ = state::off;
  };

  volatile std::sig_atomic_t due_ = 0;  // a signal came where the task could not be preempted

 private:
  PIRN_NOINLINE bool start(timer_t& timer) const noexcept {
    const platform::kept_errno callers;
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    // SA_NODEFER, since the handler may return on behalf of another task only. Without SA_ONSTACK, since the frame must
    // be on the stack of the task.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    bool started =
        sigaction(signal_, &action, nullptr) == 0 && timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
    if (started) {
      constexpr std::int64_t second = 1'000'000'000;
      const timespec period = {static_cast<std::time_t>(every_.count() / second),
                               static_cast<long>(every_.count() % second)};
      const itimerspec when = {period, period};
      if (timer_settime(timer, 0, &when, nullptr) != 0) {
        timer_delete(timer);
        started = false;
      }
    }
    return started;
  }

  static void on_signal(int /*signal*/, siginfo_t* /*info*/, void* context) noexcept {
    swap_preempter* const self = here;
    if (self == nullptr) {
      return;
    }
    const interrupted_place at(*static_cast<const ucontext_t*>(context));
    const bool in_marked_code = at.pc >= self->begin_ && at.pc < self->end_;
    const platform::kept_errno tasks;
    if (in_marked_code && self->in_policy_ == 0) {
      const interrupted_thread thread(context);
      thread.take_control_words();
      if (self->preempt_(*self, at.sp)) {
        thread.keep_settings();
        return;
      }
    }
    self->due_ = 1;
  }

  // The dispatcher that runs on this OS thread. Async-signal-safe, as a thread-local variable of this model is.
  static inline constinit thread_local swap_preempter* here __attribute__((tls_model("initial-exec"))) = nullptr;

  const char* const begin_;
  const char* const end_;
  preempt_function* const preempt_;
  const platform::duration every_;
  const int signal_;
  volatile std::sig_atomic_t in_policy_ = 0;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
