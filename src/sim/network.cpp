// The network of an execution: watches, connections, deliveries and partitions.
#include "sim/network.hpp"

#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "pirn/sim/network.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

constexpr std::uint16_t first_free_port = 49152;

/// Returns the port, which is at the same place in both families.
std::uint16_t port_in(const ::sockaddr_storage& name) noexcept {
  return ntohs(reinterpret_cast<const ::sockaddr_in&>(name).sin_port);
}

::sockaddr_storage local_name(int family, std::uint16_t port) noexcept {
  ::sockaddr_storage made{};
  made.ss_family = static_cast<::sa_family_t>(family);
  reinterpret_cast<::sockaddr_in&>(made).sin_port = htons(port);
  if (family == AF_INET6) {
    reinterpret_cast<::sockaddr_in6&>(made).sin6_addr = IN6ADDR_LOOPBACK_INIT;
  } else {
    reinterpret_cast<::sockaddr_in&>(made).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return made;
}

/// The path or abstract name of a Unix socket; empty for one without a name.
std::string unix_name(const ::sockaddr_storage& name) {
  const auto& native = reinterpret_cast<const ::sockaddr_un&>(name);
  std::string text(native.sun_path, sizeof native.sun_path);
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

std::string text_of(const port& at) { return at.name.empty() ? "port " + std::to_string(at.number) : at.name; }

}  // namespace

void network::step(const void* at) {
  if (platform::checked::watching) {
    current->touch(at);
  }
}

void network::begin_execution() noexcept {
  // Made anew instead of cleared: the memory that an execution requests must not depend on earlier ones.
  sockets_ = std::deque<socket>();
  numbers_ = std::vector<socket*>();
  connections_ = std::deque<connection>();
  mailboxes_ = std::deque<mailbox>();
  ports_ = std::map<std::uint16_t, port>();
  udp_ports_ = std::map<std::uint16_t, port>();
  names_ = std::map<std::string, port>();
  deliveries_ = std::vector<delivery>();
  next_port_ = first_free_port;
  latency = {};
  has_thread_ = false;
  scheduled_.store(0, platform::memory_order_relaxed);
}

std::string network::open_sockets() const {
  std::string text;
  for (const socket& each : sockets_) {
    if (each.references == 0) {
      continue;
    }
    text += text.empty() ? "" : ", ";
    if (each.listens) {
      text += "a listener at " + text_of(*each.at);
    } else if (each.link != nullptr && each.link->to == nullptr) {
      text += "an end of a pair of Unix sockets";
    } else if (each.link != nullptr) {
      text += each.server ? "the server's" : "the client's";
      text += " end of a connection to " + text_of(*each.link->to);
    } else if (each.box != nullptr) {
      text += "a socket for datagrams" + (each.at != nullptr ? " at " + text_of(*each.at) : std::string());
    } else {
      text += "a socket that is not connected";
    }
  }
  return text;
}

socket* network::find(int number) noexcept {
  const auto index = static_cast<std::size_t>(number - first);
  return number >= first && index < numbers_.size() ? numbers_[index] : nullptr;
}

int network::number_of(socket& made) {
  ++made.references;
  numbers_.push_back(&made);
  return first + static_cast<int>(numbers_.size()) - 1;
}

void network::release(socket& of) {
  if (of.passed) {
    step(&of);
  }
  if (--of.references == 0) {
    close(of);
  }
}

void network::release_all(const passengers& who) {
  for (socket* const each : who) {
    release(*each);
  }
}

void network::close(int number) {
  release(*std::exchange(numbers_[static_cast<std::size_t>(number - first)], nullptr));
}

void network::land(const passengers& who, std::size_t max_descriptors, received& with) {
  for (socket* const each : who) {
    with.descriptors_lost =
        with.descriptors_lost || with.descriptors.size() == max_descriptors || fault(&sim::faults::shortage);
    if (!with.descriptors_lost) {
      step(each);
      with.descriptors.push_back(number_of(*each));
    }
    release(*each);
  }
}

port& network::port_of(std::uint16_t number) {
  port& found = ports_[number];
  found.number = number;
  return found;
}

port& network::place_of(const ::sockaddr_storage& name, bool datagrams) {
  if (name.ss_family == AF_UNIX) {
    const std::string named = unix_name(name);
    port& found = names_[named];
    found.name = named.starts_with('\0') ? "@" + named.substr(1) : named;
    return found;
  }
  port& found = datagrams ? udp_ports_[port_in(name)] : port_of(port_in(name));
  found.number = port_in(name);
  return found;
}

// ---- notifications ------------------------------------------------------------------------------------------------

void network::tell(const watches& whom, event what, news& into) {
  for (const detail::watch& each : whom) {
    what.of = each.of;
    into.emplace_back(each.queue, what);
  }
}

void network::publish(const news& what) {
  for (const auto& [queue, happened] : what) {
    queue->told.exchange(1, platform::memory_order_acq_rel);
    if (std::ranges::find(queue->watched, happened.of) != queue->watched.end()) {
      queue->events.push_back(happened);  // in the same step
    }
    platform::futex_wake(&queue->told, 1);
  }
}

void network::watch(socket& of, const detail::watch& by) {
  by.queue->watched.push_back(by.of);
  news told;
  if (of.listens) {
    step(of.at);
    of.at->listeners.push_back(by);
    if (!of.at->queue.empty()) {
      told.emplace_back(by.queue, event{.of = by.of, .readable = true});
    }
  } else if (of.box != nullptr) {
    step(of.box);
    of.box->readers.push_back(by);
    if (of.box->readable()) {
      told.emplace_back(by.queue, event{.of = by.of, .readable = true, .hup_or_error = of.box->error != 0});
    }
    of.box->writers.push_back(by);
    if (look(of, false, true).writable) {
      told.emplace_back(by.queue, event{.of = by.of, .writable = true});
    }
  } else if (of.link != nullptr) {
    step(&of.in());
    of.in().readers.push_back(by);
    if (of.in().readable()) {
      told.emplace_back(by.queue, event{.of = by.of, .readable = true, .hup_or_error = of.in().at_end || of.in().cut});
    }
    step(&of.out());
    of.out().writers.push_back(by);
    if (of.writable()) {
      told.emplace_back(by.queue, event{.of = by.of, .writable = true});
    }
  }
  publish(told);
}

void network::unwatch(socket& of, event_queue& by, void* as) {
  const auto end_in = [&](const void* at, watches& list) {
    step(at);
    std::erase_if(list, [&](const detail::watch& each) { return each.queue.get() == &by && each.of == as; });
  };
  if (of.listens) {
    end_in(of.at, of.at->listeners);
  } else if (of.box != nullptr) {
    end_in(of.box, of.box->readers);
    end_in(of.box, of.box->writers);
  } else if (of.link != nullptr) {
    end_in(&of.in(), of.in().readers);
    end_in(&of.out(), of.out().writers);
  }
  step(&by.told);
  std::erase(by.watched, as);
  std::erase_if(by.events, [&](const event& each) { return each.of == as; });
}

event network::look(const socket& of, bool read, bool write) {
  event found;
  if (of.listens) {
    step(of.at);
    found.readable = read && !of.at->queue.empty();
  } else if (of.box != nullptr) {
    if (read) {
      step(of.box);
      found.readable = !of.box->arrived.empty();
      found.hup_or_error = of.box->error != 0;
    }
    if (write) {
      mailbox* const full = of.box->peer;
      step(full != nullptr ? full : of.box);
      found.writable = full == nullptr || full == of.box || !full->open || !full->full();
    }
  } else if (of.link != nullptr) {
    if (read) {
      step(&of.in());
      found.readable = of.in().readable();
    }
    if (write) {
      step(&of.out());
      found.writable = of.writable();
    }
  }
  return found;
}

std::uint16_t network::free_port(bool datagrams) {
  const auto& ports = datagrams ? udp_ports_ : ports_;
  while (ports.contains(next_port_) && ports.at(next_port_).bound) {
    ++next_port_;
  }
  return next_port_++;
}

// ---- connections --------------------------------------------------------------------------------------------------

int network::open(int family, int type) {
  socket& made = sockets_.emplace_back();
  if (family == AF_UNIX) {
    made.name.ss_family = AF_UNIX;
  } else {
    made.name = local_name(family, 0);
  }
  if (type == SOCK_DGRAM) {
    made.box = &mailboxes_.emplace_back();
    made.box->local = family == AF_UNIX;
  }
  return number_of(made);
}

int network::bind_anywhere(socket& of, int family) {
  if (family != AF_UNIX) {
    return bind(of, local_name(family, 0));
  }
  ::sockaddr_storage name{};
  name.ss_family = AF_UNIX;
  std::snprintf(reinterpret_cast<::sockaddr_un&>(name).sun_path + 1, 6, "%05x", next_port_++);
  return bind(of, name);
}

int network::bind(socket& of, const ::sockaddr_storage& to) {
  if (of.at != nullptr || of.link != nullptr) {
    return -EINVAL;
  }
  const bool datagrams = of.box != nullptr;
  ::sockaddr_storage name = to;
  if (to.ss_family == AF_UNIX) {
    if (unix_name(to).empty()) {
      return bind_anywhere(of, AF_UNIX);
    }
  } else if (port_in(to) == 0) {
    reinterpret_cast<::sockaddr_in&>(name).sin_port = htons(free_port(datagrams));
  }
  port& at = place_of(name, datagrams);
  step(&at);
  if (at.bound) {
    return -EADDRINUSE;
  }
  at.bound = true;
  at.host = name;
  at.box = of.box;
  if (of.box != nullptr) {
    of.box->partitions = at.partitions;
  }
  of.at = &at;
  of.name = name;
  return 0;
}

int network::listen(socket& of, int backlog) {
  if (of.box != nullptr) {
    return -EOPNOTSUPP;
  }
  if (of.link != nullptr || (of.at == nullptr && of.name.ss_family == AF_UNIX)) {
    return -EINVAL;
  }
  if (of.at == nullptr) {
    if (const int bound = bind_anywhere(of, of.name.ss_family); bound < 0) {
      return bound;
    }
  }
  step(of.at);
  of.listens = true;
  of.at->listening = true;
  of.at->backlog = static_cast<std::size_t>(std::max(backlog, 0)) + 1;  // as Linux counts
  return 0;
}

int network::settle(connection& link, news& into) {
  port& at = *link.to;
  if (at.partitions == 0 && (!at.listening || !at.takes(link.server))) {
    link.now = connection::stage::over;
    return -ECONNREFUSED;
  }
  if (at.partitions != 0 || at.queue.size() >= at.backlog) {
    link.now = connection::stage::waiting;
    at.waiting.push_back(&link);
    return -EINPROGRESS;
  }
  link.now = connection::stage::queued;
  at.queue.push_back(&link);
  tell(at.listeners, {.readable = true}, into);
  return 0;
}

int network::connect(socket& of, const ::sockaddr_storage& to) {
  if (of.box != nullptr) {
    return connect_datagrams(of, to);
  }
  if (of.listens || of.link != nullptr) {
    return of.listens ? -EINVAL : -EISCONN;
  }
  if (to.ss_family == AF_UNIX) {
    return connect_local(of, to);
  }
  connection& link = connections_.emplace_back();
  link.to = &port_of(port_in(to));
  link.server = to;
  of.name = link.client = of.at != nullptr ? of.name : local_name(to.ss_family, free_port(false));
  news told;
  step(link.to);
  link.to->connections.push_back(&link);
  link.to_server.partitions = link.to_client.partitions = link.to->partitions;
  if (latency == latency.zero()) {
    const int settled = settle(link, told);
    if (settled != -ECONNREFUSED) {
      of.link = &link;
      of.slow = settled != 0;
      link.established = settled == 0;
    }
    publish(told);
    return settled;
  }
  of.link = &link;
  of.slow = true;
  later({current->now() + latency, &link, nullptr});
  return -EINPROGRESS;
}

void network::arrive(connection& link) {
  news told;
  step(link.to);
  if (link.now == connection::stage::over) {
    return;  // the client has given up
  }
  const int settled = settle(link, told);
  publish(told);
  if (settled != -EINPROGRESS) {
    step(&link.to_client);
    put(link, link.to_client, settled == 0 ? pipe::packet::kind::accepted : pipe::packet::kind::refused, {}, {});
  }
}

int network::accept(socket& of) {
  if (!of.listens) {
    return -EINVAL;
  }
  port& at = *of.at;
  step(&at);
  if (at.queue.empty()) {
    return -EAGAIN;
  }
  if (current->fault(&sim::faults::shortage)) {
    return -EMFILE;
  }
  connection& link = *at.queue.front();
  at.queue.pop_front();
  link.now = connection::stage::over;
  connection* next = nullptr;
  if (at.partitions == 0 && !at.waiting.empty()) {
    next = at.waiting.front();
    at.waiting.pop_front();
    next->now = connection::stage::travelling;
  }
  socket& made = sockets_.emplace_back();
  const int number = number_of(made);
  made.link = &link;
  made.server = true;
  made.name = link.server;
  if (next != nullptr) {
    arrive(*next);
  }
  return number;
}

::sockaddr_storage network::peer_name(const socket& of) noexcept {
  if (of.link != nullptr) {
    return of.server ? of.link->client : of.link->server;
  }
  return of.box != nullptr ? of.box->peer_name : ::sockaddr_storage{};
}

int network::take_error(socket& of) {
  if (of.box != nullptr) {
    step(of.box);
    return std::exchange(of.box->error, 0);
  }
  if (of.link == nullptr) {
    return 0;
  }
  pipe& in = of.in();
  pipe& out = of.out();
  if (of.link->local) {
    step(&in);
    return std::exchange(in.read_error, 0);
  }
  step(&out);
  int error = std::exchange(out.write_error, 0);
  if (!of.server && error == 0) {
    error = std::exchange(of.link->error, 0);
  }
  step(&in);
  const int other = std::exchange(in.read_error, 0);
  return error != 0 ? error : in.at_end ? 0 : other;
}

// ---- on the way ---------------------------------------------------------------------------------------------------

void network::later(const delivery& what) {
  if (!std::exchange(has_thread_, true)) {
    current->start_daemon([](void* self) { static_cast<network*>(self)->deliver(); }, this, "network");
  }
  scheduled_.fetch_add(1, platform::memory_order_acq_rel);
  deliveries_.push_back(what);  // in the same step
  platform::futex_wake(&scheduled_, 1);
}

void network::deliver() {
  for (;;) {
    const std::uint32_t seen = scheduled_.load(platform::memory_order_acquire);
    const auto nearest = std::ranges::min_element(deliveries_, {}, &delivery::when);
    if (nearest == deliveries_.end() || nearest->when > current->now()) {
      platform::futex_wait(scheduled_, seen, nearest == deliveries_.end() ? platform::never : nearest->when);
      continue;
    }
    const delivery due = *nearest;
    deliveries_.erase(nearest);
    news told;
    if (due.box != nullptr) {
      step(due.box);
      arrive(*due.box, told);
      publish(told);
      continue;
    }
    if (due.data == nullptr) {
      arrive(*due.link);
      continue;
    }
    step(due.data);
    const arrivals now = arrive(*due.data, told);
    publish(told);
    follow(*due.link, *due.data, now);
  }
}

void network::begin_partition(std::uint16_t number) {
  partition_datagrams(number, 1);
  port& at = port_of(number);
  step(&at);
  ++at.partitions;
  const std::vector<connection*> all = at.connections;
  for (connection* const each : all) {
    for (pipe* const side : {&each->to_server, &each->to_client}) {
      step(side);
      ++side->partitions;
    }
  }
}

void network::end_partition(std::uint16_t number) {
  partition_datagrams(number, -1);
  port& at = port_of(number);
  step(&at);
  --at.partitions;
  const std::vector<connection*> all = at.connections;
  std::deque<connection*> held;
  if (at.partitions == 0) {
    held = std::exchange(at.waiting, {});
    for (connection* const each : held) {
      each->now = connection::stage::travelling;
    }
  }
  for (connection* const each : all) {
    for (pipe* const side : {&each->to_server, &each->to_client}) {
      news told;
      step(side);
      --side->partitions;
      const arrivals now = arrive(*side, told);
      publish(told);
      follow(*each, *side, now);
    }
  }
  for (connection* const each : held) {
    arrive(*each);
  }
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

latency::latency(std::chrono::nanoseconds each_way) noexcept {
  if (detail::current != nullptr) {
    constexpr std::chrono::nanoseconds max =
        std::chrono::hours(24) * 36'500;  // so that a sum of several is still a time
    before_ = std::exchange(detail::current->net().latency, std::min(each_way, max));
  }
}

latency::~latency() {
  if (detail::current != nullptr) {
    detail::current->net().latency = before_;
  }
}

partition::partition(std::uint16_t port) noexcept : port_(port) {
  if (detail::current != nullptr) {
    detail::current->net().begin_partition(port_);
  }
}

partition::~partition() {
  if (detail::current != nullptr) {
    detail::current->net().end_partition(port_);
  }
}

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
