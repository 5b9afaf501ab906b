// Reports of stack overflows.
//
// With a handler installed, a fault in the guard of any live guarded_pool prints one message. It has the name of the
// stack's user, the size of the stack, the deepest use that was seen in its class, the way to ask for more, and a
// backtrace. Then the fault is handed on to the earlier handler. Every other fault is handed on unseen.
#pragma once

#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// While at least one exists, SIGSEGV and SIGBUS are examined for overflows, process-wide. The earlier handler is
/// called after the message; with the default action the process ends as it would have without pirn (and dumps core).
class overflow_handler {
 public:
  /// Throws std::system_error if the handler cannot be installed.
  overflow_handler();
  /// Restores the earlier handlers, if this is the last one, unless other handlers have been installed since.
  ~overflow_handler();
  overflow_handler(const overflow_handler&) = delete;
  overflow_handler& operator=(const overflow_handler&) = delete;
};

/// Gives the calling OS thread an alternate signal stack with its own guard, since a handler cannot run on a stack that
/// has just overflowed. To be destroyed by the same thread, which restores the earlier alternate stack.
class overflow_thread {
 public:
  /// Throws std::system_error if there is no memory for it (about 128 KiB, only touched when a handler runs).
  overflow_thread();
  ~overflow_thread();
  overflow_thread(const overflow_thread&) = delete;
  overflow_thread& operator=(const overflow_thread&) = delete;

 private:
  void* range_ = nullptr;
  std::size_t bytes_ = 0;
  void* earlier_ = nullptr;
  std::size_t earlier_bytes_ = 0;
  int earlier_flags_ = 0;
};

/// Writes a name for the code that runs on the stack [limit, top) into `buffer`, at most `size` bytes, and returns the
/// length; 0 if it does not know the stack. `fault` is the address that faulted, or null. Runs in a signal handler:
/// must allocate nothing and take no lock.
using stack_describer = std::size_t (*)(const void* limit, const void* top, const void* fault, char* buffer,
                                        std::size_t size) noexcept;
/// Sets the describer that names stacks in messages, process-wide; null restores the default, which says "stack".
/// Returns the earlier one.
stack_describer set_stack_describer(stack_describer describe) noexcept;

/// Whether a byte of [address, address + size) lies in the guard of a stack of a live guarded_pool. So a system call
/// that failed with EFAULT is recognised as an overflow. Async-signal-safe, lock-free; O(slabs).
[[nodiscard]] bool is_guard_address(const void* address, std::size_t size = 1) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
