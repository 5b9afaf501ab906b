// UDP sockets: opening, single datagrams and batches.
#include "pirn/net/udp_socket.hpp"

#include <netinet/in.h>

#include <algorithm>

#include "net/socket.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

using detail::counted;
using detail::result_of_call;

namespace {

result<descriptor> open_udp(const endpoint& at, const udp_options& options) noexcept {
  auto socket = detail::open_socket(at.address, SOCK_DGRAM);
  if (!socket) {
    return socket;
  }
  const detail::option wishes[] = {
      {options.reuse_port, SOL_SOCKET, SO_REUSEPORT, 1},
      {at.address.is_v6(), IPPROTO_IPV6, IPV6_V6ONLY, options.dual_stack ? 0 : 1},
      {options.receive_buffer != 0, SOL_SOCKET, SO_RCVBUF, options.receive_buffer},
      {options.send_buffer != 0, SOL_SOCKET, SO_SNDBUF, options.send_buffer},
  };
  if (const result<> set = detail::set_options(*socket, wishes); !set) {
    return fail(set.error());
  }
  return socket;
}

/// A system call on one datagram.
struct message {
  ::iovec memory;
  ::sockaddr_storage name;
  ::socklen_t name_size;
};

/// A system call on a batch: the messages, and all that they point at.
struct batch {
  ::mmsghdr messages[udp_socket::max_batch];
  ::iovec memory[udp_socket::max_batch];
  ::sockaddr_storage names[udp_socket::max_batch];
  unsigned count;

  void set(std::size_t index, void* data, std::size_t size, ::socklen_t name_size) noexcept {
    memory[index] = {data, size};
    ::msghdr& header = messages[index].msg_hdr;
    header = {};
    header.msg_iov = &memory[index];
    header.msg_iovlen = 1;
    header.msg_name = name_size != 0 ? &names[index] : nullptr;
    header.msg_namelen = name_size;
  }
};

}  // namespace

result<udp_socket> udp_socket::bind(const endpoint& at, const udp_options& options) noexcept {
  auto socket = open_udp(at, options);
  if (!socket) {
    return fail(socket.error());
  }
  if (const result<> bound = detail::call_with_address(*socket, at, platform::system::bind); !bound) {
    return fail(bound.error());
  }
  return udp_socket(std::move(*socket));
}

result<udp_socket> udp_socket::connect(const endpoint& to, const udp_options& options) noexcept {
  auto socket = open_udp(to, options);
  if (!socket) {
    return fail(socket.error());
  }
  udp_socket made(std::move(*socket));
  if (const result<> set = made.set_peer(to); !set) {
    return fail(set.error());
  }
  return made;
}

result<udp_socket> udp_socket::adopt(descriptor opened) noexcept {
  if (const result<> right = detail::check_kind(opened, true, SOCK_DGRAM, false); !right) {
    return fail(right.error());
  }
  return udp_socket(std::move(opened));
}

result<> udp_socket::set_peer(const endpoint& to) noexcept {
  return detail::call_with_address(socket_, to, platform::system::connect);
}

result<udp_socket::received> udp_socket::receive(void* buffer, std::size_t size, time_limit deadline) noexcept {
  message one;
  one.memory = {buffer, size};
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    auto& [into, from, from_size] = *static_cast<message*>(argument);
    from_size = sizeof from;
    return result_of_call(platform::system::recvfrom(native, into.iov_base, into.iov_len, MSG_TRUNC,
                                                     reinterpret_cast<::sockaddr*>(&from), &from_size));
  };
  const auto whole = counted(socket_.perform(io_direction::read, deadline, call, &one, {&one.memory, 1}));
  if (!whole) {
    return fail(whole.error());
  }
  return received{std::min(*whole, size), *whole > size, detail::from_native(one.name)};
}

result<std::size_t> udp_socket::receive_batch(std::span<slot> into, time_limit deadline) noexcept {
  into = into.first(std::min(into.size(), max_batch));
  batch all;
  all.count = static_cast<unsigned>(into.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    all.set(i, into[i].buffer, into[i].size, sizeof all.names[i]);
  }
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    auto& to = *static_cast<batch*>(argument);
    return result_of_call(platform::system::recvmmsg(native, to.messages, to.count, 0, nullptr));
  };
  const auto got = counted(socket_.perform(io_direction::read, deadline, call, &all, {all.memory, into.size()}));
  for (std::size_t i = 0; i < got.value_or(0); ++i) {
    const ::mmsghdr& each = all.messages[i];
    into[i].what = {each.msg_len, (each.msg_hdr.msg_flags & MSG_TRUNC) != 0, detail::from_native(all.names[i])};
  }
  return got;
}

result<> udp_socket::send_one(const endpoint* to, const void* data, std::size_t size,
                              platform::time_point deadline) noexcept {
  message one;
  one.memory = {const_cast<void*>(data), size};
  one.name_size = to != nullptr ? detail::to_native(*to, one.name) : 0;
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    const auto& [from, name, name_size] = *static_cast<const message*>(argument);
    const auto* const address = name_size != 0 ? reinterpret_cast<const ::sockaddr*>(&name) : nullptr;
    return result_of_call(
        platform::system::sendto(native, from.iov_base, from.iov_len, MSG_NOSIGNAL, address, name_size));
  };
  const auto sent = socket_.perform(io_direction::write, deadline, call, &one, {&one.memory, 1});
  if (!sent) {
    return fail(sent.error());
  }
  return {};
}

result<> udp_socket::send(const void* data, std::size_t size, time_limit deadline) noexcept {
  return send_one(nullptr, data, size, deadline);
}
result<> udp_socket::send_to(const endpoint& to, const void* data, std::size_t size, time_limit deadline) noexcept {
  return send_one(&to, data, size, deadline);
}

result<std::size_t> udp_socket::send_batch(std::span<const datagram> what, time_limit deadline) noexcept {
  what = what.first(std::min(what.size(), max_batch));
  batch all;
  all.count = static_cast<unsigned>(what.size());
  for (std::size_t i = 0; i < what.size(); ++i) {
    const ::socklen_t name_size = what[i].to != endpoint() ? detail::to_native(what[i].to, all.names[i]) : 0;
    all.set(i, const_cast<void*>(what[i].data), what[i].size, name_size);
  }
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    auto& from = *static_cast<batch*>(argument);
    return result_of_call(platform::system::sendmmsg(native, from.messages, from.count, MSG_NOSIGNAL));
  };
  return counted(socket_.perform(io_direction::write, deadline, call, &all, {all.memory, what.size()}));
}

result<endpoint> udp_socket::local_endpoint() const noexcept {
  return detail::name_of(socket_, platform::system::getsockname);
}
result<endpoint> udp_socket::remote_endpoint() const noexcept {
  return detail::name_of(socket_, platform::system::getpeername);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
