// The stack that the system has made for an OS thread.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The bounds of an OS thread's stack; empty where the system does not report them, as for a main thread without /proc.
struct native_stack {
  char* low = nullptr;
  std::size_t size = 0;

  /// Returns the stack of the calling thread. That of a main thread has the largest size it may grow to, read from a
  /// file.
  [[nodiscard]] PIRN_COLD static native_stack of_thread() noexcept {
    native_stack result;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* low = nullptr;
      pthread_attr_getstack(&attributes, &low, &result.size);
      pthread_attr_destroy(&attributes);
      result.low = static_cast<char*>(low);
    }
    return result;
  }
  [[nodiscard]] bool holds(const char* address) const noexcept {
    return low <= address && static_cast<std::size_t>(address - low) < size;
  }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
