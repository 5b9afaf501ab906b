// Sockets for datagrams in an exploration: UDP, which may lose some, and Unix sockets, whose senders wait.
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pirn/net/address.hpp"
#include "sim/execution.hpp"
#include "sim/network.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

constexpr platform::duration lateness = std::chrono::milliseconds(100);  // of a datagram that others overtake
constexpr std::size_t max_bytes = 65'507;                                // of UDP over IPv4

std::uint16_t port_in(const ::sockaddr_storage& name) noexcept {
  return ntohs(reinterpret_cast<const ::sockaddr_in&>(name).sin_port);
}

/// The name that a receiver sees: every address is this machine.
::sockaddr_storage with_host(::sockaddr_storage name) noexcept {
  if (name.ss_family == AF_INET6) {
    auto& native = reinterpret_cast<::sockaddr_in6&>(name);
    native.sin6_addr = IN6_IS_ADDR_UNSPECIFIED(&native.sin6_addr) ? ::in6addr_loopback : native.sin6_addr;
  } else if (auto& native = reinterpret_cast<::sockaddr_in&>(name); native.sin_addr.s_addr == htonl(INADDR_ANY)) {
    native.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return name;
}

passengers forget_arrived(mailbox& at) {
  passengers left;
  for (const mailbox::datagram& each : std::exchange(at.arrived, {})) {
    left.insert(left.end(), each.with.begin(), each.with.end());
  }
  return left;
}

}  // namespace

bool port::takes(const ::sockaddr_storage& to) const noexcept {
  const ip_address own = pirn::detail::from_native(host).address;
  const ip_address wanted = pirn::detail::from_native(with_host(to)).address;
  return own == wanted || own == ip_address::any_v6() || (own == ip_address::any_v4() && !wanted.is_v6());
}

int network::connect_datagrams(socket& of, const ::sockaddr_storage& to) {
  if (!of.box->local) {
    if (of.name.ss_family == AF_INET && to.ss_family == AF_INET6) {
      return -EAFNOSUPPORT;
    }
    if (of.at == nullptr) {
      if (const int bound = bind_anywhere(of, of.name.ss_family); bound < 0) {
        return bound;
      }
    }
    step(of.box);
    of.box->peer_name = to;
    return 0;
  }
  port& at = place_of(to, true);
  step(&at);
  if (!at.bound) {
    return at.name.starts_with('@') ? -ECONNREFUSED : -ENOENT;
  }
  if (at.box == nullptr) {
    return -EPROTOTYPE;
  }
  mailbox* const peer = at.box;
  step(peer);
  if (peer->peer != nullptr && peer->peer != of.box) {
    return -EPERM;
  }
  mailbox& own = *of.box;
  step(&own);
  mailbox* const before = std::exchange(own.peer, peer);
  if (before == nullptr || before == peer || own.arrived.empty()) {
    return 0;
  }
  // The datagrams of the peer before are lost, and it hears of that if it has this one as its peer.
  const passengers left = forget_arrived(own);
  step(before);
  if (before->open && before->peer == &own) {
    before->error = ECONNRESET;
    news told;
    tell(before->readers, {.readable = true, .hup_or_error = true}, told);
    tell(before->writers, {.writable = true, .hup_or_error = true}, told);
    publish(told);
  }
  release_all(left);
  return 0;
}

void network::arrive(mailbox& at, news& into) {
  bool something = false;
  while (!at.flying.empty() && at.flying.front().arrives <= current->now()) {
    if (at.flying.front().refused) {
      at.error = ECONNREFUSED;
    } else {
      at.arrived.push_back(std::move(at.flying.front()));
    }
    at.flying.pop_front();
    something = true;
  }
  if (something) {
    tell(at.readers, {.readable = true, .hup_or_error = at.error != 0}, into);
    if (at.error != 0) {
      tell(at.writers, {.writable = true, .hup_or_error = true}, into);
    }
  }
}

std::int64_t network::send_udp(socket& of, const ::sockaddr_storage& to, const std::string& bytes) {
  if (bytes.size() > max_bytes) {
    return -EMSGSIZE;
  }
  port& at = place_of(to, true);
  step(&at);
  mailbox* receiver = at.box;
  if (receiver != nullptr) {
    step(receiver);
    const ::sockaddr_storage& only = receiver->peer_name;
    if (!receiver->open || !at.takes(to) || (only.ss_family != 0 && port_in(only) != port_in(of.name))) {
      receiver = nullptr;  // one with a peer takes datagrams of that peer only
    }
  }
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (of.box->partitions != 0 || at.partitions != 0 || fault(&sim::faults::loss)) {
    return size;
  }
  if (receiver == nullptr) {
    if (of.box->peer_name.ss_family != 0 && port_in(of.box->peer_name) == port_in(to)) {  // only a peer is reported
      step(of.box);
      put(*of.box, {.arrives = current->now() + 2 * latency, .refused = true});
    }
    return size;
  }
  const int copies = !receiver->full() && fault(&sim::faults::duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (i > 0) {
      step(receiver);
    }
    if (receiver->open && !receiver->full()) {
      const bool late = fault(&sim::faults::reorder);
      put(*receiver, {.arrives = current->now() + latency + (late ? lateness : platform::duration(0)),
                      .from = with_host(of.name),
                      .bytes = bytes,
                      .late = late});
    }
  }
  return size;
}

void network::put(mailbox& into, mailbox::datagram what) {
  news told;
  const platform::time_point arrives = what.arrives;
  const auto overtaken = std::ranges::find_if(
      into.flying, [&](const mailbox::datagram& each) { return each.late && each.arrives > arrives; });
  into.flying.insert(overtaken, std::move(what));
  arrive(into, told);
  publish(told);
  if (arrives > current->now()) {
    later({arrives, nullptr, nullptr, &into});
  }
}

std::int64_t network::send_datagram(socket& of, const message& what, passengers with) {
  mailbox& own = *of.box;
  step(&own);
  if (!own.local && what.to != nullptr) {
    if (of.name.ss_family == AF_INET && what.to->ss_family == AF_INET6) {
      return -EAFNOSUPPORT;
    }
    if (port_in(*what.to) == 0) {
      return -EINVAL;
    }
  }
  if (const int error = std::exchange(own.error, 0); error != 0) {
    return -error;
  }
  if (!own.local) {
    const ::sockaddr_storage to = what.to != nullptr ? *what.to : own.peer_name;
    if (to.ss_family == 0) {
      return -EDESTADDRREQ;
    }
    if (of.at == nullptr) {
      if (const int bound = bind_anywhere(of, of.name.ss_family); bound < 0) {
        return bound;
      }
    }
    return send_udp(of, to, what.bytes);
  }
  mailbox* to = own.peer;
  if (what.to != nullptr) {
    port& at = place_of(*what.to, true);
    step(&at);
    if (!at.bound) {
      return at.name.starts_with('@') ? -ECONNREFUSED : -ENOENT;
    }
    to = at.box;
    if (to == nullptr) {
      return -EPROTOTYPE;
    }
  }
  if (to == nullptr) {
    return -ENOTCONN;
  }
  step(to);
  if (!to->open) {
    if (own.peer == to) {
      step(&own);
      own.peer = nullptr;
      release_all(forget_arrived(own));  // the kernel drops even what had arrived
    }
    return -ECONNREFUSED;
  }
  if (to->peer != nullptr && to->peer != &own) {
    return -EPERM;
  }
  if (to != &own && to->full()) {  // Linux has no limit for what a socket sends to itself
    if (own.peer == to && std::ranges::find(to->waiting, &own) == to->waiting.end()) {
      to->waiting.push_back(&own);  // otherwise no event says when there is room
    }
    return -EAGAIN;
  }
  ::sockaddr_storage from{};
  if (of.at != nullptr) {
    from = of.name;
  }
  to->arrived.push_back({.arrives = {}, .from = from, .bytes = what.bytes, .with = std::move(with)});
  news told;
  tell(to->readers, {.readable = true}, told);
  publish(told);
  return static_cast<std::int64_t>(what.bytes.size());
}

std::int64_t network::receive_datagram(socket& of, void* into, std::size_t size, std::size_t max_descriptors,
                                       received& with) {
  mailbox& own = *of.box;
  step(&own);
  if (const int error = std::exchange(own.error, 0); error != 0) {
    return -error;
  }
  if (own.arrived.empty()) {
    return -EAGAIN;
  }
  const mailbox::datagram next = std::move(own.arrived.front());
  own.arrived.pop_front();
  std::memcpy(into, next.bytes.data(), std::min(size, next.bytes.size()));
  with.from = next.from;
  for (mailbox* const each : std::exchange(own.waiting, {})) {
    news told;
    step(each);
    tell(each->writers, {.writable = true}, told);
    publish(told);
  }
  land(next.with, max_descriptors, with);
  return static_cast<std::int64_t>(next.bytes.size());
}

void network::close_datagrams(socket& of) {
  mailbox& own = *of.box;
  step(&own);
  own.open = false;
  const passengers left = forget_arrived(own);
  own.flying.clear();
  for (mailbox* const each : std::exchange(own.waiting, {})) {
    news told;
    step(each);
    tell(each->writers, {.writable = true}, told);
    publish(told);
  }
  release_all(left);
}

void network::partition_datagrams(std::uint16_t number, int change) {
  port& at = udp_ports_[number];
  at.number = number;
  step(&at);
  at.partitions += static_cast<unsigned>(change);
  if (at.box != nullptr) {
    step(at.box);
    at.box->partitions = at.partitions;
  }
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
