// Helpers that the Unix sockets share.
#pragma once

#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "net/socket.hpp"
#include "pirn/net/unix_address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

inline constexpr std::size_t max_passed_descriptors = 253;  // of Linux (SCM_MAX_FD)

inline result<unix_address> unix_name_of(const descriptor& socket, name_call call) noexcept {
  ::sockaddr_storage name{};
  ::socklen_t size;
  if (const result<> named = ask_for_name(socket, call, name, size); !named) {
    return fail(named.error());
  }
  return from_native(name, size);
}

inline result<std::pair<descriptor, descriptor>> open_socket_pair(int type) noexcept {
  int ends[2];
  if (platform::system::socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(last_error());
  }
  return std::pair(descriptor(ends[0]), descriptor(ends[1]));
}

/// Whether the file at the path is that of a socket at which no process takes what a socket of the given type sends.
inline bool is_stale(const unix_address& at, int type) noexcept {
  struct ::stat about;
  if (!at.is_path() || platform::system::lstat(at.c_str(), &about) != 0 || !S_ISSOCK(about.st_mode)) {
    return false;
  }
  const auto probe = open_socket(AF_UNIX, type);
  const auto answer = probe ? call_with_address(*probe, at, platform::system::connect) : fail(probe.error());
  return !answer && answer.error() == std::errc::connection_refused;
}

/// Binds a socket of the given type, after the removal of a stale file if that is wanted.
inline result<> bind_to_path(const descriptor& socket, int type, const unix_address& at, bool replace_stale) noexcept {
  result<> bound = call_with_address(socket, at, platform::system::bind);
  if (!bound && bound.error() == std::errc::address_in_use && replace_stale && is_stale(at, type)) {
    platform::system::unlink(at.c_str());
    bound = call_with_address(socket, at, platform::system::bind);
  }
  return bound;
}

/// As descriptor::perform in the direction of writing, for calls that would block without a later event: a connect
/// to a listener whose queue is full, and a datagram to a full receiver that is not the peer.
inline result<std::int64_t> perform_with_pauses(descriptor& socket, platform::time_point deadline,
                                                descriptor::syscall call, void* argument,
                                                std::span<const ::iovec> memory = {}) noexcept {
  struct attempt {
    descriptor::syscall call;
    void* argument;
    bool blocked;
  } once{call, argument, false};
  const descriptor::syscall look = [](int native, void* of) noexcept -> std::int64_t {
    auto& what = *static_cast<attempt*>(of);
    const std::int64_t outcome = what.call(native, what.argument);
    what.blocked = outcome == -EAGAIN;
    return what.blocked ? 0 : outcome;
  };
  for (pauses between(deadline);; between.wait()) {
    const auto done = socket.perform(io_direction::write, deadline, look, &once, memory);
    if (!done || !once.blocked) {
      return done;
    }
  }
}

/// A message with an address and descriptors, and the memory that the kernel needs for it.
struct unix_message {
  ::iovec memory;
  ::sockaddr_storage name;
  ::msghdr header{};
  int flags = MSG_CMSG_CLOEXEC;  ///< of a receive
  alignas(::cmsghdr) std::byte control[CMSG_SPACE(max_passed_descriptors * sizeof(int))];

  unix_message(void* data, std::size_t size) noexcept : memory{data, size} {
    header.msg_iov = &memory;
    header.msg_iovlen = 1;
  }
  unix_message(const unix_message&) = delete;
  unix_message& operator=(const unix_message&) = delete;

  void send_to(const unix_address& to) noexcept {
    header.msg_namelen = to_native(to, name);
    header.msg_name = &name;
  }
  /// At most `max_passed_descriptors`.
  void attach(std::span<const int> natives) noexcept {
    if (natives.empty()) {
      return;
    }
    make_room(natives.size());
    ::cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(natives.size_bytes());
    std::memcpy(CMSG_DATA(first), natives.data(), natives.size_bytes());
  }
  /// Of exactly this many descriptors: the kernel closes the others.
  void make_room(std::size_t descriptors) noexcept {
    header.msg_control = control;
    header.msg_controllen = descriptors != 0 ? CMSG_LEN(descriptors * sizeof(int)) : 0;
  }

  static std::int64_t send(int native, void* self) noexcept {
    return result_of_call(
        platform::system::sendmsg(native, &static_cast<const unix_message*>(self)->header, MSG_NOSIGNAL));
  }
  static std::int64_t receive(int native, void* self) noexcept {
    auto& one = *static_cast<unix_message*>(self);
    return result_of_call(platform::system::recvmsg(native, &one.header, one.flags));
  }

  /// Moves the received descriptors into `into`, closes those without a place, and returns how many have one.
  std::size_t take_descriptors(std::span<descriptor> into) noexcept {
    std::size_t count = 0;
    for (::cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) {
        continue;
      }
      for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= each->cmsg_len; at += sizeof(int)) {
        int native = -1;
        std::memcpy(&native, reinterpret_cast<const std::byte*>(each) + at, sizeof native);
        auto owned = descriptor::adopt(native);
        if (count < into.size()) {
          into[count++] = owned ? std::move(*owned) : descriptor();
        }
      }
    }
    return count;
  }
  [[nodiscard]] bool descriptors_lost() const noexcept { return (header.msg_flags & MSG_CTRUNC) != 0; }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
