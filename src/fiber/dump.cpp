// Dumps of all fibers: by call and by a signal of the user's choice.
//
// Only a worker's own thread may look at its fibers. So the coordinator of a dump (a thread that called `dump`, or one
// that the user's signal has hit) interrupts one worker after the other by SIGURG, which does nothing to a program that
// does not expect it. The worker prints its fibers in the handler and answers. That works for a worker whose fiber
// never yields and for a worker that sleeps. All state is under one lock. The handler of the user's signal only tries
// the lock and, where it is held, leaves a note to its holder.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <cerrno>

#include "fiber/dump_print.hpp"
#include "fiber/monitor.hpp"
#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

constinit registered_runtime* registered_runtimes = nullptr;

namespace {

constexpr int interrupt = SIGURG;
constexpr int max_signals = 65;
constexpr auto longest_silence = std::chrono::seconds(5);
constexpr auto between_looks = std::chrono::milliseconds(20);

constinit unsigned runtimes_made = 0;

// ---- the lock -----------------------------------------------------------------------------------------------------

constinit platform::signal_atomic<std::uint32_t> lock_word{0};
constinit platform::signal_atomic<bool> noted{false};  ///< the user's signal came while the lock was held

bool try_lock() noexcept { return lock_word.exchange(1, platform::memory_order_seq_cst) == 0; }

void lock() noexcept {
  while (!try_lock()) {
    platform::futex_wait(lock_word, 1);
  }
}

void dump_all(worker* own, const void* own_context) noexcept;

/// Releases the lock and makes a dump that was requested meanwhile. `own` is as in `dump_all`: a thread in a signal
/// handler cannot ask itself by the interrupt, which may be blocked.
void unlock(worker* own = nullptr, const void* own_context = nullptr) noexcept {
  for (;;) {
    lock_word.store(0, platform::memory_order_seq_cst);
    platform::futex_wake(&lock_word, 1);
    if (!noted.load(platform::memory_order_seq_cst) || !try_lock()) {
      return;
    }
    if (noted.exchange(false, platform::memory_order_seq_cst)) {
      dump_all(own, own_context);
    }
  }
}

// ---- coordinator and worker ---------------------------------------------------------------------------------------

constinit platform::signal_atomic<const worker*> asked{nullptr};  ///< worker that shall print; cleared as it begins
constinit platform::signal_atomic<std::uint32_t> answers{0};
constinit int asked_descriptor = 2;

/// The task of the worker that is asked.
using service = void(worker& w, const void* signal_context) noexcept;

void print(worker& w, const void* signal_context) noexcept {
  message out(asked_descriptor);
  print_fibers(w, out, signal_context);
  out.flush();
}
constinit service* asked_for = &print;

constinit turn last_turn = {};
constinit turn found_turn = {};
constinit platform::duration turn_lasts = {};

void look_at_turn(worker& w, const void* signal_context) noexcept {
  const bool in_fiber = w.queue.runs_fiber();
  found_turn = {in_fiber ? running_fiber(&w)->number() : 0, w.budget.left()};
  if (in_fiber && found_turn == last_turn) {
    message out(STDERR_FILENO);
    print_turn(w, turn_lasts, out, signal_context);
    out.flush();
  }
}

/// Sends the interrupt with a mark by which the handler recognizes it. Returns false if the thread no longer exists. A
/// thread to which nothing can be sent counts as a thread that does not answer.
bool send(int thread) noexcept {
  siginfo_t info = {};
  info.si_signo = interrupt;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_value.sival_ptr = &asked;
  return thread != 0 && (syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, interrupt, &info) == 0 || errno != ESRCH);
}

bool is_ours(const siginfo_t& info) noexcept { return info.si_code == SI_QUEUE && info.si_value.sival_ptr == &asked; }

/// Has the thread of `w` print its fibers. Returns false if it does not answer.
bool ask(const worker& w) noexcept {
  const std::uint32_t before = answers.load(platform::memory_order_acquire);
  asked.store(&w, platform::memory_order_seq_cst);
  bool alive = send(w.thread_id.load(platform::memory_order_acquire));
  const platform::time_point limit = platform::now() + longest_silence;
  while (answers.load(platform::memory_order_acquire) == before) {
    if (asked.load(platform::memory_order_acquire) == nullptr) {  // it is printing, which may take long
      platform::futex_wait(answers, before);
      continue;
    }
    const platform::time_point now = platform::now();
    if (!alive || now >= limit) {
      const worker* expected = &w;
      if (asked.compare_exchange_strong(expected, nullptr, platform::memory_order_acq_rel,
                                        platform::memory_order_acquire)) {
        return !alive;
      }
      continue;
    }
    platform::futex_wait(answers, before, now + between_looks);
    // Sent again, since ThreadSanitizer keeps a signal for the fiber that it has hit, and that may not run again.
    alive = asked.load(platform::memory_order_acquire) != &w || send(w.thread_id.load(platform::memory_order_acquire));
  }
  return true;
}

void dump_runtime(const registered_runtime& r, int descriptor, worker* own, const void* own_context) noexcept {
  {
    message out(descriptor);
    out.text("pirn: runtime ").number(r.number).text(": ").number(r.worker_count).text(" workers, ");
    out.number(r.state->statistics().live_fibers).text(" fibers\n");
    const engine_choice& used = r.state->engine_used;
    out.text("  engine: ").text(used.name).text(" (").text(used.why).text(")\n").flush();
    for (unsigned i = 0; i < r.worker_count; ++i) {
      if (used.completes && !r.workers[i]->io->completes()) {
        out.text("  worker ").number(i).text(" has epoll, since the kernel refused another ring\n").flush();
      }
    }
  }
  asked_descriptor = descriptor;
  for (unsigned i = 0; i < r.worker_count; ++i) {
    worker& w = *r.workers[i];
    if (&w == own || platform::exploring) {
      print(w, own_context);
    } else if (!ask(w)) {
      message out(descriptor);
      out.text("  worker ")
          .number(i)
          .text(" does not answer: it blocks SIGURG, is stopped, or must not be sent a signal\n")
          .flush();
    }
  }
}

void dump_all(worker* own, const void* own_context) noexcept {
  begin_dump();
  for (const registered_runtime* r = registered_runtimes; r != nullptr; r = r->next) {
    dump_runtime(*r, STDERR_FILENO, own, own_context);
  }
}

// ---- signals ------------------------------------------------------------------------------------------------------

struct signal_use {
  unsigned users;
  struct sigaction earlier;
};
constinit signal_use uses[max_signals] = {};

/// Calls the handler that was there before ours, if it is a function.
void hand_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& before = uses[signal].earlier;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

/// Returns the worker that runs here or, between two waits of a thread that made its runtime, stands still here; else
/// null.
worker* worker_of_thread() noexcept {
  worker* const running = current_worker();
  return running != nullptr ? running : caller_worker();
}

void on_interrupt(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  worker* const w = worker_of_thread();
  const worker* expected = w;
  if (w != nullptr && asked.compare_exchange_strong(expected, nullptr, platform::memory_order_acq_rel,
                                                    platform::memory_order_relaxed)) {
    asked_for(*w, context);
    answers.fetch_add(1, platform::memory_order_release);
    platform::futex_wake(&answers, 1);
  }
  if (!is_ours(*info)) {
    hand_on(signal, info, context);
  }
  errno = saved_errno;
}

void on_dump_signal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  noted.store(true, platform::memory_order_seq_cst);
  if (try_lock()) {
    worker* const own = worker_of_thread();
    if (noted.exchange(false, platform::memory_order_seq_cst)) {
      dump_all(own, context);
    }
    unlock(own, context);
  }
  hand_on(signal, info, context);
  errno = saved_errno;
}

void use_signal(int signal, void (*handler)(int, siginfo_t*, void*)) {
  if (signal <= 0 || signal >= max_signals) {
    throw std::system_error(EINVAL, std::system_category(), "pirn: dump_signal");
  }
  signal_use& use = uses[signal];
  if (use.users == 0) {
    struct sigaction ours = {};
    ours.sa_sigaction = handler;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    struct sigaction before = {};
    if (sigaction(signal, nullptr, &before) != 0) {
      throw std::system_error(errno, std::system_category(), "pirn: dump_signal");
    }
    if ((before.sa_flags & SA_SIGINFO) == 0 || before.sa_sigaction != handler) {
      use.earlier = before;
      if (sigaction(signal, &ours, nullptr) != 0) {
        throw std::system_error(errno, std::system_category(), "pirn: dump_signal");
      }
    }
  }
  ++use.users;
}

void release_signal(int signal, void (*handler)(int, siginfo_t*, void*)) noexcept {
  signal_use& use = uses[signal];
  if (--use.users != 0) {
    return;
  }
  struct sigaction current = {};
  sigaction(signal, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == handler) {
    sigaction(signal, &use.earlier, nullptr);
  }
}

/// Holds the lock for a scope.
class guard {
 public:
  guard() noexcept { lock(); }
  ~guard() { unlock(); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
};

_Unwind_Reason_Code stop_at_once(_Unwind_Context*, void*) { return _URC_END_OF_STACK; }

}  // namespace

void register_for_dump(runtime_state& state) {
  // Functions that initialize themselves at first use do it now and not in a handler.
  _Unwind_Backtrace(&stop_at_once, nullptr);
  static_cast<void>(high_water(stack{}));
  auto list = std::make_unique<worker*[]>(state.workers.size());
  for (std::size_t i = 0; i < state.workers.size(); ++i) {
    list[i] = state.workers[i].get();
  }
  auto entry = std::make_unique<registered_runtime>();
  const int wanted = state.options.dump_signal;
  if (wanted == interrupt) {
    throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                            "pirn: SIGURG cannot be the dump_signal, since dumps use it");
  }
  const guard held;
  prepare_dumps();
  use_signal(interrupt, &on_interrupt);
  if (wanted != 0) {
    try {
      use_signal(wanted, &on_dump_signal);
    } catch (...) {
      release_signal(interrupt, &on_interrupt);
      throw;
    }
  }
  *entry = {registered_runtimes, &state, list.release(), static_cast<unsigned>(state.workers.size()), ++runtimes_made};
  registered_runtimes = entry.release();
}

void unregister_for_dump(runtime_state& state) noexcept {
  const guard held;
  for (registered_runtime** link = &registered_runtimes; *link != nullptr; link = &(*link)->next) {
    registered_runtime* const found = *link;
    if (found->state == &state) {
      *link = found->next;
      delete[] found->workers;
      delete found;
      release_signal(interrupt, &on_interrupt);
      if (state.options.dump_signal != 0) {
        release_signal(state.options.dump_signal, &on_dump_signal);
      }
      return;
    }
  }
}

void enter_dumps(worker& w) noexcept {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, interrupt);
  if (w.owner.options.dump_signal != 0) {
    sigaddset(&wanted, w.owner.options.dump_signal);
  }
  pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr);
  w.thread_id.store(platform::thread_id(), platform::memory_order_release);
}

void leave_dumps(worker& w) noexcept { w.thread_id.store(0, platform::memory_order_release); }

turn find_turn(const worker& w, const turn& last, platform::duration lasts) noexcept {
  const guard held;
  begin_dump();
  last_turn = last;
  turn_lasts = lasts;
  found_turn = {};
  asked_for = &look_at_turn;
  static_cast<void>(ask(w));
  asked_for = &print;
  return found_turn;
}

void dump_fibers(runtime_state& state, int descriptor) noexcept {
  const guard held;
  begin_dump();
  for (const registered_runtime* r = registered_runtimes; r != nullptr; r = r->next) {
    if (r->state == &state) {
      dump_runtime(*r, descriptor, nullptr, nullptr);
    }
  }
}

bool handles_signals() noexcept {
  const auto is_function = [](const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
  };
  const guard held;
  for (int signal = 1; signal < max_signals; ++signal) {
    struct sigaction now = {};
    switch (signal) {
      case SIGSEGV:  // these come to a running thread
      case SIGBUS:
      case SIGFPE:
      case SIGILL:
      case SIGTRAP:
      case SIGSYS:
      case SIGABRT:
        continue;
      default:
        if (sigaction(signal, nullptr, &now) != 0 || !is_function(now)) {
          continue;
        }
    }
    const bool ours = uses[signal].users != 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
                      (now.sa_sigaction == &on_interrupt || now.sa_sigaction == &on_dump_signal);
    if (!ours || is_function(uses[signal].earlier)) {
      return true;
    }
  }
  return false;
}

}  // namespace detail

void runtime::dump(int descriptor) noexcept { detail::dump_fibers(*state_, descriptor); }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
