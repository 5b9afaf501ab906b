// Shared by the stack tests: code that runs on a stack, and code that runs in a child process.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>

#include "pirn/context/arch.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/stack/stack.hpp"

namespace stack_test {

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

struct run_state {
  pirn::arch::context caller;
  pirn::arch::context callee;
  pirn::sanitizer_state caller_sanitizer;
  pirn::sanitizer_state callee_sanitizer;
  const std::function<void()>* body = nullptr;
};

inline void run_entry(pirn::arch::word raw, pirn::arch::word) {
  auto* const state = reinterpret_cast<run_state*>(raw);
  state->callee_sanitizer.arrive();
  (*state->body)();
  pirn::arch::word none[2] = {};
  state->callee_sanitizer.leave_for_good(state->caller_sanitizer);
  pirn::arch::switch_to(state->callee, state->caller, none[0], none[1]);
}

/// Runs `body` on `on` to its end.
inline void run_on(const pirn::stack& on, const std::function<void()>& body) {
  run_state state;
  state.body = &body;
  state.caller_sanitizer.adopt_thread();
  state.callee_sanitizer.create(on.limit(), on.size(), "test");
  state.callee = pirn::arch::prepare(on.top(), &run_entry);
  auto first = reinterpret_cast<pirn::arch::word>(&state);
  pirn::arch::word second = 0;
  state.caller_sanitizer.leave(state.callee_sanitizer);
  pirn::arch::switch_to(state.caller, state.callee, first, second);
  state.caller_sanitizer.arrive();
  state.callee_sanitizer.destroy();
}

struct child_result {
  int status = 0;
  std::string error_output;
  [[nodiscard]] bool exited_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  [[nodiscard]] bool killed_by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
  [[nodiscard]] bool says(const std::string& text) const { return error_output.find(text) != std::string::npos; }
};

/// Runs `body` in a child process and returns its stderr. The child exits with the result of `body`, without
/// destructors.
inline child_result in_child(const std::function<int()>& body) {
  int ends[2];
  if (pipe(ends) != 0) {
    std::abort();
  }
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    _exit(body());
  }
  close(ends[1]);
  child_result result;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    result.error_output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  waitpid(child, &result.status, 0);
  return result;
}

/// Returns whether the kernel can read the byte, which tells without a fault whether an access would fault.
inline bool readable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) {
    std::abort();
  }
  const bool done = write(ends[1], address, 1) == 1;
  const bool refused = !done && errno == EFAULT;
  close(ends[0]);
  close(ends[1]);
  return done || !refused;
}

inline std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

/// Returns the lowest byte of a stack's guard of `size` bytes.
inline char* guard_of(const pirn::stack& value, std::size_t size) { return static_cast<char*>(value.limit()) - size; }

}  // namespace stack_test
