// Helpers of the operations on descriptors: what comes before a system call and after it.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <span>
#include <system_error>

#include "detail/system.hpp"
#include "fiber/process_fork.hpp"
#include "pirn/fiber/this_fiber.hpp"
#include "pirn/io/descriptor.hpp"
#include "pirn/io/stream.hpp"
#include "pirn/stack/expert/overflow.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Counts one operation as pending; false once the descriptor is closed.
class descriptor::operation_guard {
 public:
  explicit operation_guard(const descriptor& of) noexcept : of_(of) {
    const_cast<descriptor&>(of).notice_fork();
    open_ = (of_.users_.fetch_add(one_user, platform::memory_order_acq_rel) & closed_bit) == 0;
  }
  ~operation_guard() { of_.users_.fetch_sub(one_user, platform::memory_order_acq_rel); }
  operation_guard(const operation_guard&) = delete;
  operation_guard& operator=(const operation_guard&) = delete;
  explicit operator bool() const noexcept { return open_; }

 private:
  const descriptor& of_;
  bool open_;
};

namespace detail {

/// How many operations in a row may succeed without suspension before the fiber yields.
inline constexpr std::uint8_t operation_budget = 32;

/// Returns the error that ends an operation even before its first attempt.
inline std::error_code reason_to_stop(platform::time_point deadline) noexcept {
  if (const auto asked = this_fiber::check_stop(); !asked) {
    return asked.error();
  }
  if (deadline != platform::never && platform::now() >= deadline) {
    return io_error::timed_out;
  }
  return {};
}

/// Returns the error that a system call has reported about these parts of memory.
inline std::error_code error_of_call(std::int64_t outcome, std::span<const ::iovec> memory) noexcept {
  const auto touches_guard = [](const ::iovec& part) { return is_guard_address(part.iov_base, part.iov_len); };
  if (outcome == -EFAULT && std::any_of(memory.begin(), memory.end(), touches_guard)) {
    return io_error::stack_overflow;
  }
  return {static_cast<int>(-outcome), std::system_category()};
}

inline std::error_code system_error_of(int number) noexcept { return {number, std::system_category()}; }

// Never inlined: after a wait that may migrate the caller, the address of errno is a different one.
PIRN_NOINLINE inline std::error_code last_error() noexcept { return system_error_of(errno); }
PIRN_NOINLINE inline std::int64_t result_of_call(std::int64_t returned) noexcept {
  return returned >= 0 ? returned : -std::int64_t{errno};
}

/// Fills in the kernel's form of as many parts as there is room for, and returns it.
inline std::span<::iovec> to_native(std::span<const const_buffer> parts, std::span<::iovec> into) noexcept {
  const std::size_t count = std::min(parts.size(), into.size());
  for (std::size_t i = 0; i < count; ++i) {
    into[i] = {const_cast<void*>(parts[i].data), parts[i].size};
  }
  return into.first(count);
}

/// Returns the argument of shutdown(2).
inline int to_native(shutdown_half which) noexcept {
  return which == shutdown_half::read ? SHUT_RD : which == shutdown_half::write ? SHUT_WR : SHUT_RDWR;
}

/// Whether a second open of the file loses nothing. The other side of a terminal would be another one.
inline bool can_reopen(int native, const struct ::stat& about) noexcept {
  int number = 0;
  return S_ISFIFO(about.st_mode) ||
         (S_ISCHR(about.st_mode) && ::isatty(native) == 1 && platform::system::ioctl(native, TIOCGPTN, &number) != 0);
}

/// Opens the pipe or terminal with that number again, which then has a mode that no other user shares. Returns -1 where
/// that is not possible: without /proc, or if the pipe is of another user.
inline int open_again(int native, int flags) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", native);
  return ::open(path, (flags & (O_ACCMODE | O_APPEND | O_DIRECT)) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

/// Whether the kernel, or a sandbox that is older than the call, refuses what another call may do. If an error is of
/// the file, the other call says so.
inline bool wants_another_call(std::int64_t outcome) noexcept {
  return outcome == -EOPNOTSUPP || outcome == -ENOSYS || outcome == -EPERM || outcome == -EACCES;
}

inline result<std::size_t> counted(const result<std::int64_t>& done) noexcept {
  if (!done) {
    return fail(done.error());
  }
  return static_cast<std::size_t>(*done);
}

}  // namespace detail

inline void descriptor::notice_fork() noexcept {
  if (process_.load(platform::memory_order_acquire) != detail::process_forks.load(platform::memory_order_relaxed))
      [[unlikely]] {
    leave_parent();
  }
}

inline std::error_code descriptor::reason_to_refuse(const operation_guard& guard, io_direction direction,
                                                    platform::time_point deadline) noexcept {
  if (!guard) {
    return io_error::closed;
  }
  const std::error_code reason = detail::reason_to_stop(deadline);
  if (reason) {
    count_unsuspended(direction);
  }
  return reason;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
