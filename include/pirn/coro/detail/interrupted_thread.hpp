// The state of an OS thread that a signal handler passes on when it lets other code of the thread run, and back.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstring>

#include <ucontext.h>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The state of the OS thread, other than registers of the interrupted code, that the kernel exchanges for a handler:
/// the control words of floating point, which a handler begins with defaults on x86, and the signal mask and the
/// alternate stack, which the return from it sets back.
class interrupted_thread {
 public:
  explicit interrupted_thread(void* context) noexcept : at_(*static_cast<ucontext_t*>(context)) {}
  interrupted_thread(const interrupted_thread&) = delete;
  interrupted_thread& operator=(const interrupted_thread&) = delete;

  /// Gives the running code the control words of the interrupted one.
  PIRN_ALWAYS_INLINE void take_control_words() const noexcept {
#if defined(__x86_64__)
    if (const auto* const kept = at_.uc_mcontext.fpregs; kept != nullptr) {
      asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(kept->mxcsr), "m"(kept->cwd));
    }
#elif defined(__i386__)
    if (const auto* const kept = at_.uc_mcontext.fpregs; kept != nullptr) {
      asm volatile("fldcw %0" : : "m"(kept->cw));
#if defined(__SSE__)
      constexpr std::uintptr_t env_bytes = 24;  // of FXSAVE, before its mxcsr; there if the upper half of `status` is 0
      if (kept->status >> 16 == 0) {
        const char* const mxcsr = reinterpret_cast<const char*>(kept + 1) + env_bytes;
        asm volatile("ldmxcsr %0" : : "m"(*reinterpret_cast<const std::uint32_t*>(mxcsr)));
      }
#endif
    }
#endif
  }
  /// Has the return from the handler leave the mask and the alternate stack as they are now.
  void keep_settings() const noexcept {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    std::memcpy(&at_.uc_sigmask, &mask, (_NSIG - 1) / 8);  // the kernel's has no more bytes
    stack_t alternate;
    if (sigaltstack(nullptr, &alternate) == 0) {
      at_.uc_stack = alternate;
    }
  }

 private:
  ucontext_t& at_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
