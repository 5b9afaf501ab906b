// System calls in an exploration: those about a socket go to the network of the execution, all others to the kernel.
#include "detail/system.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "sim/disk.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform::system {

namespace {

using sim::detail::network;

bool is_socket(int descriptor) noexcept { return descriptor >= network::first && !is_file(descriptor); }

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
auto with_socket(int descriptor, What what) noexcept
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

::socklen_t size_of(const ::sockaddr_storage& name) noexcept {
  switch (name.ss_family) {
    case AF_INET:
      return sizeof(::sockaddr_in);
    case AF_INET6:
      return sizeof(::sockaddr_in6);
    case AF_UNIX: {
      const auto& path = reinterpret_cast<const ::sockaddr_un&>(name).sun_path;
      const auto* const end = std::find_if(std::rbegin(path), std::rend(path), [](char c) { return c != 0; }).base();
      const bool needs_zero = path[0] != 0 && end != std::end(path);
      return static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + (end - path) + (needs_zero ? 1 : 0));
    }
    default:
      return 0;
  }
}

int give(const ::sockaddr_storage& name, ::sockaddr* into, ::socklen_t* size) noexcept {
  const ::socklen_t whole = size_of(name);
  std::memcpy(into, &name, std::min(*size, whole));
  *size = whole;
  return 0;
}

/// Calls `one` with each message until one fails; that is the result only if it is the first.
template <class One>
int several(::mmsghdr* messages, unsigned count, One one) noexcept {
  unsigned done = 0;
  for (; done < count; ++done) {
    const ssize_t outcome = one(messages[done].msg_hdr);
    if (outcome < 0) {
      return done != 0 ? static_cast<int>(done) : -1;
    }
    messages[done].msg_len = static_cast<unsigned>(outcome);
  }
  return static_cast<int>(done);
}

}  // namespace

int socket(int domain, int type, int protocol) noexcept {
  if (sim::detail::current == nullptr) {
    return answer(-ENETDOWN);
  }
  const int kind = type & 0xf;
  const bool known = (domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX) &&
                     (kind == SOCK_STREAM || kind == SOCK_DGRAM) && protocol == 0;
  return answer(known ? sim::detail::current->net().open(domain, kind) : -EPROTONOSUPPORT);
}

int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  const int kind = type & 0xf;
  const bool known = domain == AF_UNIX && (kind == SOCK_STREAM || kind == SOCK_DGRAM) && protocol == 0;
  if (sim::detail::current == nullptr || !known) {
    return answer(-EPROTONOSUPPORT);
  }
  return sim::detail::current->net().open_pair(kind, ends);
}

int bind(int descriptor, const ::sockaddr* to, ::socklen_t size) noexcept {
  return with_socket(descriptor, [&](network& net, auto& of) { return net.bind(of, copied(to, size)); });
}

int listen(int descriptor, int backlog) noexcept {
  return with_socket(descriptor, [&](network& net, auto& of) { return net.listen(of, backlog); });
}

int accept4(int descriptor, ::sockaddr* from, ::socklen_t* size, int /*flags*/) noexcept {
  const int made = with_socket(descriptor, [](network& net, auto& of) { return net.accept(of); });
  if (made >= 0 && from != nullptr) {
    system::getpeername(made, from, size);
  }
  return made;
}

int connect(int descriptor, const ::sockaddr* to, ::socklen_t size) noexcept {
  return with_socket(descriptor, [&](network& net, auto& of) { return net.connect(of, copied(to, size)); });
}

int getsockname(int descriptor, ::sockaddr* name, ::socklen_t* size) noexcept {
  return with_socket(descriptor, [&](network&, auto& of) { return give(of.name, name, size); });
}

int getpeername(int descriptor, ::sockaddr* name, ::socklen_t* size) noexcept {
  return with_socket(descriptor, [&](network&, auto& of) {
    const ::sockaddr_storage peer = network::peer_name(of);
    return peer.ss_family == 0 ? -ENOTCONN : give(peer, name, size);
  });
}

int getsockopt(int descriptor, int level, int name, void* value, ::socklen_t* size) noexcept {
  return with_socket(descriptor, [&](network& net, auto& of) {
    if (level == IPPROTO_TCP && name == TCP_ULP) {
      *size = 0;  // no protocol is on top of TCP
      return 0;
    }
    if (level == SOL_SOCKET && name == SO_PEERCRED && *size >= sizeof(::ucred)) {
      const ::ucred self{::getpid(), ::geteuid(), ::getegid()};
      std::memcpy(value, &self, sizeof self);
      *size = sizeof self;
      return 0;
    }
    if (!of.reads || !of.writes) {
      return -ENOTSOCK;  // the end of a pipe
    }
    if (level != SOL_SOCKET || (name != SO_ERROR && name != SO_TYPE) || *size < sizeof(int)) {
      return -ENOPROTOOPT;
    }
    const int asked = name == SO_ERROR ? net.take_error(of) : of.box != nullptr ? SOCK_DGRAM : SOCK_STREAM;
    std::memcpy(value, &asked, sizeof asked);
    *size = sizeof asked;
    return 0;
  });
}

int setsockopt(int descriptor, int /*level*/, int /*name*/, const void* /*value*/, ::socklen_t /*size*/) noexcept {
  // No option makes a difference here: even with SO_LINGER, a close still offers the data that was sent.
  return with_socket(descriptor, [](network&, auto&) { return 0; });
}

ssize_t read(int descriptor, void* into, std::size_t size) noexcept {
  return is_socket(descriptor) ? recv(descriptor, into, size, 0) : ::read(descriptor, into, size);
}

ssize_t recv(int descriptor, void* into, std::size_t size, int flags) noexcept {
  return is_socket(descriptor) ? recvfrom(descriptor, into, size, flags, nullptr, nullptr)
                               : ::recv(descriptor, into, size, flags);
}

ssize_t recvfrom(int descriptor, void* into, std::size_t size, int flags, ::sockaddr* from,
                 ::socklen_t* from_size) noexcept {
  ::iovec memory{into, size};
  ::msghdr message{};
  message.msg_name = from;
  message.msg_namelen = from_size != nullptr ? *from_size : 0;
  message.msg_iov = &memory;
  message.msg_iovlen = 1;
  const ssize_t got = system::recvmsg(descriptor, &message, flags);
  if (got >= 0 && from_size != nullptr) {
    *from_size = message.msg_namelen;
  }
  return got;
}

ssize_t recvmsg(int descriptor, ::msghdr* message, int flags) noexcept {
  if (!is_socket(descriptor)) {
    return ::recvmsg(descriptor, message, flags);
  }
  const auto [into, size] = message->msg_iov[0];  // no caller has several parts
  const std::size_t places =
      message->msg_controllen > CMSG_LEN(0) ? (message->msg_controllen - CMSG_LEN(0)) / sizeof(int) : 0;
  network::received with;
  const ssize_t got =
      with_socket(descriptor, [&](network& net, auto& of) { return net.receive(of, into, size, places, with); });
  if (got < 0) {
    return got;
  }
  if (message->msg_name != nullptr) {
    give(with.from, static_cast<::sockaddr*>(message->msg_name), &message->msg_namelen);
  }
  const bool cut = static_cast<std::size_t>(got) > size;
  message->msg_flags = (cut ? MSG_TRUNC : 0) | (with.descriptors_lost ? MSG_CTRUNC : 0);
  const std::size_t bytes = with.descriptors.size() * sizeof(int);
  message->msg_controllen = 0;
  if (bytes != 0) {
    message->msg_controllen = CMSG_LEN(bytes);
    ::cmsghdr* const first = CMSG_FIRSTHDR(message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(first), with.descriptors.data(), bytes);
  }
  return cut && (flags & MSG_TRUNC) == 0 ? static_cast<ssize_t>(size) : got;
}

int recvmmsg(int descriptor, ::mmsghdr* messages, unsigned count, int flags, ::timespec* /*timeout*/) noexcept {
  return several(messages, count, [&](::msghdr& each) { return system::recvmsg(descriptor, &each, flags); });
}

ssize_t readv(int descriptor, const ::iovec* parts, int count) noexcept {
  if (is_file(descriptor)) {
    return read_file(descriptor, parts, count);
  }
  return is_socket(descriptor) ? recv(descriptor, parts[0].iov_base, parts[0].iov_len, 0)
                               : ::readv(descriptor, parts, count);
}

ssize_t writev(int descriptor, const ::iovec* parts, int count) noexcept {
  if (is_file(descriptor)) {
    return write_file(descriptor, parts, count);
  }
  if (!is_socket(descriptor)) {
    return ::writev(descriptor, parts, count);
  }
  ::msghdr message{};
  message.msg_iov = const_cast<::iovec*>(parts);
  message.msg_iovlen = static_cast<std::size_t>(count);
  return system::sendmsg(descriptor, &message, 0);
}

ssize_t write(int descriptor, const void* from, std::size_t size) noexcept {
  return is_socket(descriptor) ? send(descriptor, from, size, 0) : ::write(descriptor, from, size);
}

ssize_t send(int descriptor, const void* from, std::size_t size, int flags) noexcept {
  return is_socket(descriptor) ? sendto(descriptor, from, size, flags, nullptr, 0)
                               : ::send(descriptor, from, size, flags);
}

ssize_t sendto(int descriptor, const void* data, std::size_t size, int flags, const ::sockaddr* to,
               ::socklen_t to_size) noexcept {
  ::iovec memory{const_cast<void*>(data), size};
  ::msghdr message{};
  message.msg_name = const_cast<::sockaddr*>(to);
  message.msg_namelen = to_size;
  message.msg_iov = &memory;
  message.msg_iovlen = 1;
  return system::sendmsg(descriptor, &message, flags);
}

ssize_t sendmsg(int descriptor, const ::msghdr* message, int flags) noexcept {
  if (!is_socket(descriptor)) {
    return ::sendmsg(descriptor, message, flags);
  }
  network::message what;
  for (std::size_t i = 0; i < message->msg_iovlen; ++i) {
    what.bytes.append(static_cast<const char*>(message->msg_iov[i].iov_base), message->msg_iov[i].iov_len);
  }
  ::sockaddr_storage to{};
  if (message->msg_name != nullptr) {
    to = copied(static_cast<const ::sockaddr*>(message->msg_name), message->msg_namelen);
    what.to = &to;
  }
  if (message->msg_controllen >= CMSG_LEN(0)) {
    const ::cmsghdr* const first = CMSG_FIRSTHDR(message);
    what.descriptors.resize((first->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(what.descriptors.data(), CMSG_DATA(first), what.descriptors.size() * sizeof(int));
  }
  return with_socket(descriptor, [&](network& net, auto& of) { return net.send(of, what); });
}

int sendmmsg(int descriptor, ::mmsghdr* messages, unsigned count, int flags) noexcept {
  return several(messages, count, [&](const ::msghdr& each) { return system::sendmsg(descriptor, &each, flags); });
}

ssize_t sendfile(int descriptor, int file, ::off_t* offset, std::size_t size) noexcept {
  if (!is_socket(descriptor)) {
    return ::sendfile(descriptor, file, offset, size);
  }
  char bytes[sim::detail::pipe::capacity];
  const ::iovec memory{bytes, std::min(size, sizeof bytes)};
  const ssize_t got = system::preadv(file, &memory, 1, *offset);
  const ssize_t sent = got <= 0 ? got : send(descriptor, bytes, static_cast<std::size_t>(got), 0);
  *offset += std::max<ssize_t>(sent, 0);
  return sent;
}

int shutdown(int descriptor, int how) noexcept {
  if (!is_socket(descriptor)) {
    return ::shutdown(descriptor, how);
  }
  return with_socket(descriptor, [&](network& net, auto& of) { return net.shutdown(of, how); });
}

int pipe2(int* ends, int flags) noexcept {
  return sim::detail::current != nullptr ? sim::detail::current->net().open_pipe(ends) : ::pipe2(ends, flags);
}

int close(int descriptor) noexcept {
  if (is_file(descriptor)) {
    return close_file(descriptor);
  }
  if (!is_socket(descriptor)) {
    return ::close(descriptor);
  }
  return with_socket(descriptor, [descriptor](network& net, auto&) {
    net.close(descriptor);
    return 0;
  });
}

// The paths of an exploration's sockets are no files: a path is free as soon as its socket is closed.
int fchmod(int /*descriptor*/, ::mode_t /*mode*/) noexcept { return 0; }
int lstat(const char* /*path*/, struct ::stat* /*into*/) noexcept { return answer(-ENOENT); }
int unlink(const char* /*path*/) noexcept { return answer(-ENOENT); }

int poll(::pollfd* interests, ::nfds_t count, int milliseconds) noexcept {
  if (count == 1 && is_file(interests[0].fd)) {
    interests[0].revents = interests[0].events;  // a file is always ready
    return 1;
  }
  if (count != 1 || !is_socket(interests[0].fd)) {
    return ::poll(interests, count, milliseconds);
  }
  ::pollfd& interest = interests[0];
  return with_socket(interest.fd, [&](network& net, auto& of) {
    const bool read = (interest.events & POLLIN) != 0, write = (interest.events & POLLOUT) != 0;
    const auto until = milliseconds < 0 ? never : now() + std::chrono::milliseconds(milliseconds);
    sim::detail::event found = net.look(of, read, write);
    if (!found.readable && !found.writable && !found.hup_or_error && milliseconds != 0) {
      const auto queue = std::make_shared<sim::detail::event_queue>();
      net.watch(of, {queue, nullptr});
      for (;;) {
        const bool late = queue->told.exchange(0, memory_order_acq_rel) == 0 && !futex_wait(queue->told, 0, until);
        found = net.look(of, read, write);
        if (found.readable || found.writable || found.hup_or_error || late) {
          break;
        }
      }
      net.unwatch(of, *queue, nullptr);
    }
    interest.revents = static_cast<short>((found.readable ? POLLIN : 0) | (found.writable ? POLLOUT : 0) |
                                          (found.hup_or_error ? POLLERR : 0));
    return interest.revents != 0 ? 1 : 0;
  });
}

int fcntl(int descriptor, int command, int argument) noexcept {
  if (is_file(descriptor)) {
    return flags_of_file(descriptor, command);
  }
  if (!is_socket(descriptor)) {
    return ::fcntl(descriptor, command, argument);
  }
  return with_socket(descriptor, [&](network&, auto& of) {
    const int access = !of.writes ? O_RDONLY : !of.reads ? O_WRONLY : O_RDWR;
    return command == F_GETFL ? access | O_NONBLOCK : 0;
  });
}

int fstat(int descriptor, struct ::stat* into) noexcept {
  if (is_file(descriptor)) {
    return stat_file(descriptor, into);
  }
  if (!is_socket(descriptor)) {
    return ::fstat(descriptor, into);
  }
  return with_socket(descriptor, [&](network&, auto& of) {
    *into = {};
    into->st_mode = of.reads && of.writes ? S_IFSOCK : S_IFIFO;
    into->st_ino = static_cast<::ino_t>(descriptor);
    return 0;
  });
}

int ioctl(int descriptor, unsigned long command, int* value) noexcept {
  if (!is_socket(descriptor)) {
    return ::ioctl(descriptor, command, value);
  }
  return with_socket(descriptor, [&](network&, auto&) {
    *value = 0;  // data counts as acknowledged as soon as it is sent
    return command == SIOCOUTQ ? 0 : -ENOTTY;
  });
}

}  // namespace platform::system
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
