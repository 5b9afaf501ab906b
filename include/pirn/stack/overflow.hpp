// Running off a stack, reported as what it is.
//
// With a handler installed, a fault in the guard of any live guarded_pool prints one message (who, how large the stack
// is, how deep its class has been seen, how to ask for more, a backtrace) and is then handed on to whatever handler was
// there before. Every other fault is handed on unseen.
#pragma once

#include <cstddef>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// While at least one exists, SIGSEGV and SIGBUS are looked at for overflows, process-wide. What handled them before is
/// called after the message; with the default action the process ends as it would have without us (and dumps core).
class overflow_handler {
 public:
  /// Throws std::system_error if the handler cannot be installed.
  overflow_handler();
  /// The last one puts the earlier handlers back, unless somebody has installed others since.
  ~overflow_handler();
  overflow_handler(const overflow_handler&) = delete;
  overflow_handler& operator=(const overflow_handler&) = delete;
};

/// Gives the calling OS thread an alternate signal stack with a guard of its own: a handler cannot run on a stack that
/// has just ended. To be destroyed by the same thread, which puts the earlier alternate stack back.
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

/// Writes a name for what runs on the stack [limit, top) into `buffer`, at most `size` bytes, and returns how many; 0
/// if it does not know. `fault` is the address that faulted, or null. Runs in a signal handler: must allocate nothing
/// and take no lock.
using stack_describer = std::size_t (*)(const void* limit, const void* top, const void* fault, char* buffer,
                                        std::size_t size) noexcept;
/// Sets who names stacks in messages, process-wide; null puts the default back, which says "stack". Returns the
/// earlier.
stack_describer set_stack_describer(stack_describer describe) noexcept;

/// Whether a byte of [address, address + size) lies in the guard of a stack of a live guarded_pool: this is how a
/// system call that failed with EFAULT is told to be an overflow. Async-signal-safe, lock-free; O(slabs).
[[nodiscard]] bool is_guard_address(const void* address, std::size_t size = 1) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
