// The error number of the C library, which a signal handler must leave as it was.
#pragma once

#include <cerrno>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Keeps the calling OS thread's errno, and restores it at the end of its life, which must be on the same OS thread.
class kept_errno {
 public:
  kept_errno() noexcept : kept_(errno) {}
  ~kept_errno() { errno = kept_; }
  kept_errno(const kept_errno&) = delete;
  kept_errno& operator=(const kept_errno&) = delete;

 private:
  const int kept_;
};

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
