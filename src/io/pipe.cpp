// Implements pipe_end: three ways not to block a worker, and writes that never raise SIGPIPE.
#include "pirn/io/pipe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "detail/system.hpp"
#include "io/attempt.hpp"
#include "io/sigpipe.hpp"
#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

using detail::last_error;
using detail::result_of_call;

constexpr std::size_t terminal_room = 256;  ///< as a rule, of one that poll(2) reports as ready

struct transfer_call {
  std::span<const ::iovec> memory;
  io_direction direction;
};

std::size_t size_of(std::span<const ::iovec> memory) noexcept {
  std::size_t size = 0;
  for (const ::iovec& each : memory) {
    size += each.iov_len;
  }
  return size;
}

std::int64_t by_mode(int native, void* argument) noexcept {
  const auto& wanted = *static_cast<const transfer_call*>(argument);
  return wanted.direction == io_direction::read
             ? result_of_call(
                   platform::system::readv(native, wanted.memory.data(), static_cast<int>(wanted.memory.size())))
             : detail::without_sigpipe(size_of(wanted.memory), [&] {
                 return result_of_call(
                     platform::system::writev(native, wanted.memory.data(), static_cast<int>(wanted.memory.size())));
               });
}

std::int64_t by_flag(int native, void* argument) noexcept {
  const auto& wanted = *static_cast<const transfer_call*>(argument);
  ::msghdr message{};
  message.msg_iov = const_cast<::iovec*>(wanted.memory.data());
  message.msg_iovlen = wanted.memory.size();
  return wanted.direction == io_direction::read
             ? result_of_call(platform::system::recvmsg(native, &message, MSG_DONTWAIT))
             : result_of_call(platform::system::sendmsg(native, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/// Shortens `memory` to `most` bytes.
std::span<::iovec> shorten(std::span<::iovec> memory, std::size_t most) noexcept {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i].iov_len = std::min(memory[i].iov_len, most);
    most -= memory[i].iov_len;
    if (most == 0) {
      return memory.first(i + 1);
    }
  }
  return memory;
}

/// Returns -EAGAIN if the call would block: the wait before it may have ended without readiness, and another caller may
/// have been faster.
std::int64_t in_pool(int native, void* argument) noexcept {
  const bool reads = static_cast<const transfer_call*>(argument)->direction == io_direction::read;
  ::pollfd interest{.fd = native, .events = reads ? std::int16_t{POLLIN} : std::int16_t{POLLOUT}, .revents = 0};
  std::int64_t outcome;
  do {
    outcome = result_of_call(platform::system::poll(&interest, 1, 0));
    outcome = outcome > 0 ? by_mode(native, argument) : outcome == 0 ? -EAGAIN : outcome;
  } while (outcome == -EINTR);
  return outcome;
}

/// As `in_pool`, but where the kernel can tell, no other writer comes between the question and the write.
std::int64_t into_pipe_in_pool(int native, void* argument) noexcept {
  const auto& wanted = *static_cast<const transfer_call*>(argument);
  const std::int64_t outcome = detail::without_sigpipe(size_of(wanted.memory), [&] {
    return result_of_call(
        ::pwritev2(native, wanted.memory.data(), static_cast<int>(wanted.memory.size()), -1, RWF_NOWAIT));
  });
  return outcome == -EINTR || detail::wants_another_call(outcome) ? in_pool(native, argument) : outcome;
}

}  // namespace

result<std::pair<pipe_end, pipe_end>> pipe_end::make_pair() noexcept {
  int ends[2];
  if (platform::system::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
    return fail(last_error());
  }
  return std::pair(pipe_end(descriptor(ends[0]), way::non_blocking), pipe_end(descriptor(ends[1]), way::non_blocking));
}

result<pipe_end> pipe_end::adopt(int native) noexcept {
  descriptor owned(native);
  struct ::stat about;
  if (platform::system::fstat(native, &about) != 0) {
    return fail(last_error());
  }
  if (S_ISSOCK(about.st_mode)) {
    return pipe_end(std::move(owned), way::by_flag);
  }
  if (detail::can_reopen(native, about)) {
    const int flags = platform::system::fcntl(native, F_GETFL);
    if ((flags & O_NONBLOCK) != 0) {
      return pipe_end(std::move(owned), way::non_blocking);
    }
    if (const int made = detail::open_again(native, flags); made >= 0) {
      return pipe_end(descriptor(made), way::non_blocking);
    }
  }
  return pipe_end(std::move(owned), S_ISFIFO(about.st_mode) ? way::in_pool_by_pages
                                    : ::isatty(native) == 1 ? way::in_pool_by_lines
                                                            : way::in_pool);
}

result<pipe_end> pipe_end::standard(int native) noexcept {
  const int copy = ::fcntl(native, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) {
    return fail(last_error());
  }
  return adopt(copy);
}

result<std::size_t> pipe_end::transfer(io_direction direction, std::span<::iovec> memory,
                                       time_limit deadline) noexcept {
  const bool into_pipe = direction == io_direction::write && way_ == way::in_pool_by_pages;
  if (into_pipe || (direction == io_direction::write && way_ == way::in_pool_by_lines)) {
    // More than there is room for would block the thread for as long as nothing is read.
    memory = shorten(memory, into_pipe ? PIPE_BUF : terminal_room);
  }
  transfer_call wanted{memory, direction};
  result<std::int64_t> done;
  if (way_ >= way::in_pool) {
    // A terminal or device is waited for first, so that a stop and the deadline can end that. A file is always ready.
    do {
      if (const result<> ready = opened_.wait(direction, deadline); !ready) {
        return fail(ready.error());
      }
      done = perform(operation::call(into_pipe ? into_pipe_in_pool : in_pool, &wanted, &opened_), deadline);
    } while (!done && done.error() == std::errc::resource_unavailable_try_again);
  } else {
    done = opened_.perform(direction, deadline, way_ == way::by_flag ? by_flag : by_mode, &wanted, memory);
  }
  return detail::counted(done);
}

result<std::size_t> pipe_end::read(void* into, std::size_t size, time_limit deadline) noexcept {
  ::iovec memory{into, size};
  return transfer(io_direction::read, {&memory, 1}, deadline);
}

result<std::size_t> pipe_end::write_some(std::span<const const_buffer> parts, time_limit deadline) noexcept {
  ::iovec natives[16];
  return transfer(io_direction::write, detail::to_native(parts, natives), deadline);
}

result<> pipe_end::shutdown(shutdown_half half) noexcept {
  const descriptor::syscall ask = [](int native, void*) noexcept {
    return result_of_call(platform::system::fcntl(native, F_GETFL));
  };
  const result<std::int64_t> flags = opened_.invoke(ask, nullptr);
  if (!flags) {
    return fail(flags.error());
  }
  if (way_ == way::by_flag) {
    const descriptor::syscall end = [](int native, void* wanted) noexcept {
      return result_of_call(
          platform::system::shutdown(native, detail::to_native(*static_cast<const shutdown_half*>(wanted))));
    };
    const result<std::int64_t> done = opened_.invoke(end, &half);
    return done ? result<>() : fail(done.error());
  }
  const int direction = static_cast<int>(*flags) & O_ACCMODE;
  if (direction == O_RDWR && half != shutdown_half::both) {
    return fail(std::make_error_code(std::errc::operation_not_supported));
  }
  if (half == shutdown_half::both || (half == shutdown_half::read) == (direction == O_RDONLY)) {
    close();
  }
  return {};
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
