// Datagrams between Unix sockets.
#include "pirn/net/unix_datagram_socket.hpp"

#include "net/unix_socket.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

using detail::unix_message;

result<unix_datagram_socket> unix_datagram_socket::bind(const unix_address& at, const options& how) noexcept {
  auto socket = detail::open_socket(AF_UNIX, SOCK_DGRAM);
  if (!socket) {
    return fail(socket.error());
  }
  if (const result<> bound = detail::bind_to_path(*socket, SOCK_DGRAM, at, how.replace_stale); !bound) {
    return fail(bound.error());
  }
  unix_datagram_socket made(std::move(*socket));
  made.file_ = detail::socket_file(at);
  return made;
}

result<unix_datagram_socket> unix_datagram_socket::connect(const unix_address& to) noexcept {
  auto socket = detail::open_socket(AF_UNIX, SOCK_DGRAM);
  if (!socket) {
    return fail(socket.error());
  }
  unix_datagram_socket made(std::move(*socket));
  if (const result<> set = made.set_peer(to); !set) {
    return fail(set.error());
  }
  return made;
}

result<std::pair<unix_datagram_socket, unix_datagram_socket>> unix_datagram_socket::pair() noexcept {
  auto ends = detail::open_socket_pair(SOCK_DGRAM);
  if (!ends) {
    return fail(ends.error());
  }
  return std::pair(unix_datagram_socket(std::move(ends->first)), unix_datagram_socket(std::move(ends->second)));
}

result<unix_datagram_socket> unix_datagram_socket::adopt(descriptor opened) noexcept {
  if (const result<> right = detail::check_kind(opened, false, SOCK_DGRAM, false); !right) {
    return fail(right.error());
  }
  return unix_datagram_socket(std::move(opened));
}

result<> unix_datagram_socket::set_peer(const unix_address& to) noexcept {
  return detail::call_with_address(socket_, to, platform::system::connect);
}

result<unix_datagram_socket::received> unix_datagram_socket::receive_descriptors(std::span<descriptor> into,
                                                                                 void* buffer, std::size_t size,
                                                                                 time_limit deadline) noexcept {
  unix_message message(buffer, size);
  message.flags |= MSG_TRUNC;  // so that the call returns the whole length
  message.make_room(std::min(into.size(), detail::max_passed_descriptors));
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    auto& one = *static_cast<unix_message*>(argument);
    one.header.msg_name = &one.name;
    one.header.msg_namelen = sizeof one.name;
    return unix_message::receive(native, argument);
  };
  const auto whole =
      detail::counted(socket_.perform(io_direction::read, deadline, call, &message, {&message.memory, 1}));
  if (!whole) {
    return fail(whole.error());
  }
  const std::size_t taken = message.take_descriptors(into);
  return received{std::min(*whole, size), *whole > size, taken, message.descriptors_lost(),
                  detail::from_native(message.name, message.header.msg_namelen)};
}

result<> unix_datagram_socket::send_descriptors(std::span<const int> natives, const void* data, std::size_t size,
                                                time_limit deadline) noexcept {
  if (natives.size() > detail::max_passed_descriptors) {
    return fail(std::make_error_code(std::errc::invalid_argument));
  }
  unix_message message(const_cast<void*>(data), size);
  message.attach(natives);
  const auto sent = socket_.perform(io_direction::write, deadline, unix_message::send, &message, {&message.memory, 1});
  if (!sent) {
    return fail(sent.error());
  }
  return {};
}

result<> unix_datagram_socket::send_to(const unix_address& to, const void* data, std::size_t size,
                                       time_limit deadline) noexcept {
  unix_message message(const_cast<void*>(data), size);
  message.send_to(to);
  const auto sent = detail::perform_with_pauses(socket_, deadline, unix_message::send, &message, {&message.memory, 1});
  if (!sent) {
    return fail(sent.error());
  }
  return {};
}

result<unix_address> unix_datagram_socket::local_address() const noexcept {
  return detail::unix_name_of(socket_, platform::system::getsockname);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
