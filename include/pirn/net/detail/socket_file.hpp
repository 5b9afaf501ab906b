// The file of a Unix socket that is bound to a path.
#pragma once

#include <cstdint>
#include <utility>

#include "pirn/detail/platform.hpp"
#include "pirn/net/unix_address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Removes the file when the socket is closed, unless another file has its path by then, or this is a child of the
/// process that made it, which may serve it still. Any thread may call `remove`.
class socket_file {
 public:
  socket_file() noexcept = default;
  /// Of a socket that has just been bound to `at`.
  explicit socket_file(const unix_address& at) noexcept;
  socket_file(socket_file&& other) noexcept { take(other); }
  socket_file& operator=(socket_file&& other) noexcept {
    if (this != &other) {
      remove();
      take(other);
    }
    return *this;
  }
  ~socket_file() { remove(); }

  void remove() noexcept;

 private:
  void take(socket_file& other) noexcept {
    at_ = other.at_;
    device_ = other.device_;
    inode_ = other.inode_;
    owner_.store(other.owner_.exchange(0, platform::memory_order_relaxed), platform::memory_order_relaxed);
  }

  unix_address at_;
  std::uint64_t device_ = 0, inode_ = 0;
  platform::atomic<int> owner_{0};  ///< the process that removes it; 0 if it is not there
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
