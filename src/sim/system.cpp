// System calls in an exploration: those about a socket go to the network of the execution, all others to the kernel.
#include "detail/system.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform::system {

namespace {

using sim::detail::network;

bool is_socket(int descriptor) noexcept { return descriptor >= network::first; }

template <class T>
T answer(T outcome) noexcept {
  if (outcome < 0) {
    errno = static_cast<int>(-outcome);
    return -1;
  }
  return outcome;
}

/// Calls `what` with the network and the socket; outside of an execution no socket is open.
template <class What>
auto with(int descriptor, What what) noexcept
    -> decltype(what(std::declval<network&>(), std::declval<sim::detail::socket&>())) {
  if (sim::detail::current != nullptr) {
    network& net = sim::detail::current->net();
    if (sim::detail::socket* const found = net.find(descriptor)) {
      return answer(what(net, *found));
    }
  }
  return answer(decltype(what(std::declval<network&>(), std::declval<sim::detail::socket&>()))(-EBADF));
}

::sockaddr_storage copied(const ::sockaddr* from, ::socklen_t size) noexcept {
  ::sockaddr_storage made{};
  std::memcpy(&made, from, std::min<std::size_t>(size, sizeof made));
  return made;
}

int give(const ::sockaddr_storage& name, ::sockaddr* into, ::socklen_t* size) noexcept {
  const auto whole =
      static_cast<::socklen_t>(name.ss_family == AF_INET6 ? sizeof(::sockaddr_in6) : sizeof(::sockaddr_in));
  std::memcpy(into, &name, std::min(*size, whole));
  *size = whole;
  return 0;
}

}  // namespace

int socket(int domain, int type, int protocol) noexcept {
  if (sim::detail::current == nullptr) {
    return answer(-ENETDOWN);
  }
  const bool known = (domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM && protocol == 0;
  return answer(known ? sim::detail::current->net().open(domain) : -EPROTONOSUPPORT);
}

int bind(int descriptor, const ::sockaddr* to, ::socklen_t size) noexcept {
  return with(descriptor, [&](network& net, auto& of) { return net.bind(of, copied(to, size)); });
}

int listen(int descriptor, int backlog) noexcept {
  return with(descriptor, [&](network& net, auto& of) { return net.listen(of, backlog); });
}

int accept4(int descriptor, ::sockaddr* from, ::socklen_t* size, int /*flags*/) noexcept {
  const int made = with(descriptor, [](network& net, auto& of) { return net.accept(of); });
  if (made >= 0 && from != nullptr) {
    system::getpeername(made, from, size);
  }
  return made;
}

int connect(int descriptor, const ::sockaddr* to, ::socklen_t size) noexcept {
  return with(descriptor, [&](network& net, auto& of) { return net.connect(of, copied(to, size)); });
}

int getsockname(int descriptor, ::sockaddr* name, ::socklen_t* size) noexcept {
  return with(descriptor, [&](network&, auto& of) { return give(of.name, name, size); });
}

int getpeername(int descriptor, ::sockaddr* name, ::socklen_t* size) noexcept {
  return with(descriptor, [&](network&, auto& of) {
    return of.link == nullptr ? -ENOTCONN : give(of.server ? of.link->client : of.link->server, name, size);
  });
}

int getsockopt(int descriptor, int level, int name, void* value, ::socklen_t* size) noexcept {
  return with(descriptor, [&](network& net, auto& of) {
    if (level == IPPROTO_TCP && name == TCP_ULP) {
      *size = 0;  // no protocol is on top of TCP
      return 0;
    }
    if (level != SOL_SOCKET || name != SO_ERROR || *size < sizeof(int)) {
      return -ENOPROTOOPT;
    }
    const int error = net.take_error(of);
    std::memcpy(value, &error, sizeof error);
    *size = sizeof error;
    return 0;
  });
}

int setsockopt(int descriptor, int /*level*/, int /*name*/, const void* /*value*/, ::socklen_t /*size*/) noexcept {
  // No option makes a difference here: even with SO_LINGER, a close still offers the data that was sent.
  return with(descriptor, [](network&, auto&) { return 0; });
}

ssize_t read(int descriptor, void* into, std::size_t size) noexcept {
  return is_socket(descriptor) ? recv(descriptor, into, size, 0) : ::read(descriptor, into, size);
}

ssize_t recv(int descriptor, void* into, std::size_t size, int flags) noexcept {
  if (!is_socket(descriptor)) {
    return ::recv(descriptor, into, size, flags);
  }
  return with(descriptor, [&](network& net, auto& of) { return net.receive(of, into, size); });
}

ssize_t write(int descriptor, const void* from, std::size_t size) noexcept {
  return is_socket(descriptor) ? send(descriptor, from, size, 0) : ::write(descriptor, from, size);
}

ssize_t send(int descriptor, const void* from, std::size_t size, int flags) noexcept {
  if (!is_socket(descriptor)) {
    return ::send(descriptor, from, size, flags);
  }
  return with(descriptor, [&](network& net, auto& of) { return net.send(of, from, size); });
}

ssize_t sendmsg(int descriptor, const ::msghdr* message, int flags) noexcept {
  if (!is_socket(descriptor)) {
    return ::sendmsg(descriptor, message, flags);
  }
  std::string all;
  for (std::size_t i = 0; i < message->msg_iovlen; ++i) {
    all.append(static_cast<const char*>(message->msg_iov[i].iov_base), message->msg_iov[i].iov_len);
  }
  return send(descriptor, all.data(), all.size(), flags);
}

ssize_t sendfile(int descriptor, int file, ::off_t* offset, std::size_t size) noexcept {
  if (!is_socket(descriptor)) {
    return ::sendfile(descriptor, file, offset, size);
  }
  char bytes[sim::detail::pipe::capacity];
  const ssize_t got = ::pread(file, bytes, std::min(size, sizeof bytes), *offset);
  const ssize_t sent = got <= 0 ? got : send(descriptor, bytes, static_cast<std::size_t>(got), 0);
  *offset += std::max<ssize_t>(sent, 0);
  return sent;
}

int shutdown(int descriptor, int how) noexcept {
  if (!is_socket(descriptor)) {
    return ::shutdown(descriptor, how);
  }
  return with(descriptor, [&](network& net, auto& of) { return net.shutdown(of, how); });
}

int close(int descriptor) noexcept {
  if (!is_socket(descriptor)) {
    return ::close(descriptor);
  }
  return with(descriptor, [](network& net, auto& of) {
    net.close(of);
    return 0;
  });
}

int poll(::pollfd* interests, ::nfds_t count, int milliseconds) noexcept {
  if (count != 1 || !is_socket(interests[0].fd)) {
    return ::poll(interests, count, milliseconds);
  }
  ::pollfd& interest = interests[0];
  return with(interest.fd, [&](network& net, auto& of) {
    const bool read = (interest.events & POLLIN) != 0, write = (interest.events & POLLOUT) != 0;
    const auto until = milliseconds < 0 ? never : now() + std::chrono::milliseconds(milliseconds);
    sim::detail::event found = net.look(of, read, write);
    if (!found.readable && !found.writable && milliseconds != 0) {
      const auto queue = std::make_shared<sim::detail::event_queue>();
      net.watch(of, {queue, nullptr});
      for (;;) {
        const bool late = queue->told.exchange(0, memory_order_acq_rel) == 0 && !futex_wait(queue->told, 0, until);
        found = net.look(of, read, write);
        if (found.readable || found.writable || late) {
          break;
        }
      }
      net.unwatch(of, *queue, nullptr);
    }
    interest.revents = static_cast<short>((found.readable ? POLLIN : 0) | (found.writable ? POLLOUT : 0));
    return interest.revents != 0 ? 1 : 0;
  });
}

int fcntl(int descriptor, int command, int argument) noexcept {
  if (!is_socket(descriptor)) {
    return ::fcntl(descriptor, command, argument);
  }
  return with(descriptor, [&](network&, auto&) { return command == F_GETFL ? O_RDWR | O_NONBLOCK : 0; });
}

int ioctl(int descriptor, unsigned long command, int* value) noexcept {
  if (!is_socket(descriptor)) {
    return ::ioctl(descriptor, command, value);
  }
  return with(descriptor, [&](network&, auto&) {
    *value = 0;  // data counts as acknowledged as soon as it is sent
    return command == SIOCOUTQ ? 0 : -ENOTTY;
  });
}

}  // namespace platform::system
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
