// Intercepts actions that would end the process, or leave the exploration's one thread.
#pragma once

#include <dlfcn.h>

#include <csignal>
#include <iterator>

#include "pirn/stack/expert/overflow.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

/// Returns the C library's function that one of the exploration replaces. Null in a static program.
template <class Function>
Function* next_of(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// While it exists, std::abort and an access to unmapped memory end the execution in which they happen instead of the
/// process. std::exit, similar functions and the start of a thread do so even without a guard: they are defined in the
/// guard's source, in place of the C library's.
class process_guard {
 public:
  process_guard();
  ~process_guard();
  process_guard(const process_guard&) = delete;
  process_guard& operator=(const process_guard&) = delete;

 private:
  static constexpr int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};

  const overflow_thread stack_of_handler_;
  struct sigaction before_[std::size(signals)] = {};
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
