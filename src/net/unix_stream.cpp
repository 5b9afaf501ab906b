// Connections of Unix sockets: connecting, passed descriptors, credentials; and the removal of sockets' files.
#include "pirn/net/unix_stream.hpp"

#include <unistd.h>

#include "net/unix_socket.hpp"
#include "pirn/net/detail/socket_file.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

static_assert(unix_stream::max_descriptors == detail::max_passed_descriptors);

result<unix_stream> unix_stream::connect(const unix_address& to, time_limit deadline) noexcept {
  auto socket = detail::open_socket(AF_UNIX, SOCK_STREAM);
  if (!socket) {
    return fail(socket.error());
  }
  struct target {
    ::sockaddr_storage native;
    ::socklen_t size;
  } wanted;
  wanted.size = detail::to_native(to, wanted.native);
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    const auto& there = *static_cast<const target*>(argument);
    return detail::result_of_call(
        platform::system::connect(native, reinterpret_cast<const ::sockaddr*>(&there.native), there.size));
  };
  if (const auto done = detail::perform_with_pauses(*socket, deadline, call, &wanted); !done) {
    return fail(done.error());
  }
  return unix_stream(std::move(*socket));
}

result<std::pair<unix_stream, unix_stream>> unix_stream::pair() noexcept {
  auto ends = detail::open_socket_pair(SOCK_STREAM);
  if (!ends) {
    return fail(ends.error());
  }
  return std::pair(unix_stream(std::move(ends->first)), unix_stream(std::move(ends->second)));
}

result<std::size_t> unix_stream::send_descriptors(std::span<const int> natives, const void* data, std::size_t size,
                                                  time_limit deadline) noexcept {
  if (size == 0 || natives.size() > max_descriptors) {
    return fail(std::make_error_code(std::errc::invalid_argument));
  }
  detail::unix_message message(const_cast<void*>(data), size);
  message.attach(natives);
  return detail::counted(
      socket_.perform(io_direction::write, deadline, detail::unix_message::send, &message, {&message.memory, 1}));
}

result<unix_stream::received> unix_stream::receive_descriptors(std::span<descriptor> into, void* buffer,
                                                               std::size_t size, time_limit deadline) noexcept {
  detail::unix_message message(buffer, size);
  message.make_room(std::min(into.size(), max_descriptors));
  const auto got = detail::counted(
      socket_.perform(io_direction::read, deadline, detail::unix_message::receive, &message, {&message.memory, 1}));
  if (!got) {
    return fail(got.error());
  }
  const std::size_t taken = message.take_descriptors(into);
  return received{*got, taken, message.descriptors_lost()};
}

result<unix_stream::credentials> unix_stream::peer_credentials() const noexcept {
  ::ucred about{};
  ::socklen_t size = sizeof about;
  const auto asked = detail::call_on(socket_, [&](int native) {
    return platform::system::getsockopt(native, SOL_SOCKET, SO_PEERCRED, &about, &size);
  });
  if (!asked) {
    return fail(asked.error());
  }
  return credentials{about.pid, about.uid, about.gid};
}

result<unix_address> unix_stream::local_address() const noexcept {
  return detail::unix_name_of(socket_, platform::system::getsockname);
}
result<unix_address> unix_stream::remote_address() const noexcept {
  return detail::unix_name_of(socket_, platform::system::getpeername);
}

namespace detail {

socket_file::socket_file(const unix_address& at) noexcept : at_(at) {
  struct ::stat about;
  if (at.is_path() && platform::system::lstat(at.c_str(), &about) == 0) {
    device_ = about.st_dev;
    inode_ = about.st_ino;
    owner_.store(::getpid(), platform::memory_order_relaxed);
  }
}

void socket_file::remove() noexcept {
  struct ::stat about;
  if (owner_.exchange(0, platform::memory_order_acq_rel) == ::getpid() &&
      platform::system::lstat(at_.c_str(), &about) == 0 && about.st_dev == device_ && about.st_ino == inode_) {
    platform::system::unlink(at_.c_str());
  }
}

}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
