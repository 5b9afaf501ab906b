// The stack that the system made for an OS thread.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Where the stack of an OS thread lies; empty where the system does not tell, as that of a main thread without /proc.
struct native_stack {
  char* low = nullptr;
  std::size_t size = 0;

  /// That of the calling thread. Of a main thread it is as large as it may become, and is looked up in a file.
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
