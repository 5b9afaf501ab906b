// What would end the process, or leave the exploration's one thread.
#pragma once

#include <dlfcn.h>

#include <csignal>
#include <iterator>

#include "pirn/stack/overflow.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

/// The C library's function for which one of the exploration stands in. Null in a static program.
template <class Function>
Function* next_of(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// While it lives std::abort, and an access to memory that is not there, end the execution in which they happen and not
/// the process. So do, for good, std::exit and its like and the start of a thread: these are defined in its source, in
/// place of the C library's.
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
