// Ends an execution instead of the process: handles signals, and replaces the C library's functions that end a process
// or start a thread.
#include "sim/process_guard.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sim/execution.hpp"

// The internal names of these functions in a static C library, where there is no next one to look up.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
__attribute__((weak)) int __pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                                           void* argument) noexcept;
__attribute__((weak)) void __run_exit_handlers(int status, void** handlers, bool, bool);
__attribute__((weak)) extern void* __quick_exit_funcs;
// NOLINTEND(bugprone-reserved-identifier)
}
// This function is in the same object of a static C library, which is linked only if the program refers to it.
[[gnu::used]] static const auto ask_for_thread_creation = &thrd_create;

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

void on_signal(int signal, siginfo_t* info, void* context) {
  if (current == nullptr) {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);  // a crash happens again on return, and an abort continues
    return;
  }
  current->end_by_signal(signal, *info, pirn::detail::registers_of(context));
}

using leaving = void(int);
constexpr const char* quick = "quick_exit";

[[noreturn]] void leave_process(const char* name, int status) {
  if (current != nullptr) {
    current->abort(std::string(name) + "(" + std::to_string(status) + ") was called");
  }
  if (leaving* const next = next_of<leaving>(name)) {
    next(status);
  }
  // In a static program, whose `exit` is the C library's all the same.
  if (name == quick && __run_exit_handlers != nullptr && &__quick_exit_funcs != nullptr) {
    __run_exit_handlers(status, &__quick_exit_funcs, false, false);
  }
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

}  // namespace

process_guard::process_guard() {
  struct sigaction action = {};
  action.sa_sigaction = &on_signal;
  // The handler switches to another context, so no return unblocks the signal.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], &action, &before_[i]);
  }
}

process_guard::~process_guard() {
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], &before_[i], nullptr);
  }
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

// These replace the C library's functions in the whole program; those of a static C library override them. With status
// 0 a test would end as if it had passed. With another status the failing execution would be unknown. A separate thread
// would run outside of the schedule.
extern "C" {

__attribute__((weak)) void exit(int status) noexcept { pirn::sim::detail::leave_process("exit", status); }
__attribute__((weak)) void _exit(int status) { pirn::sim::detail::leave_process("_exit", status); }
__attribute__((weak)) void _Exit(int status) noexcept { pirn::sim::detail::leave_process("_Exit", status); }
__attribute__((weak)) void quick_exit(int status) noexcept {
  pirn::sim::detail::leave_process(pirn::sim::detail::quick, status);
}

__attribute__((weak)) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                                         void* argument) noexcept {
  using namespace pirn::sim::detail;
  if (current != nullptr) {
    current->abort("a thread was started that the exploration does not control: make it a sim::thread");
  }
  using creating = decltype(pthread_create);
  // A sanitizer has its own in front of the C library's, in the program itself.
  auto* next = reinterpret_cast<creating*>(dlsym(RTLD_DEFAULT, "__interceptor_pthread_create"));
  next = next != nullptr ? next : next_of<creating>("pthread_create");
  next = next != nullptr ? next : &__pthread_create;
  return next(thread, attributes, body, argument);
}
}
