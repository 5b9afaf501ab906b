// The transfer of data by connections: the operations of a network on pipes.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/execution.hpp"
#include "sim/network.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

bool network::fault(bool sim::faults::* what) { return platform::checked::watching && current->fault(what); }

network::arrivals network::arrive(pipe& at, news& into) {
  using kind = pipe::packet::kind;
  arrivals found;
  bool something = false, hup_or_error = false;
  while (at.partitions == 0 && !at.flying.empty() && at.flying.front().arrives <= current->now()) {
    const pipe::packet next = std::move(at.flying.front());
    at.flying.pop_front();
    if (next.what == kind::accepted || next.what == kind::refused) {
      found.answered = true;
      found.error = next.what == kind::refused ? ECONNREFUSED : 0;
      continue;
    }
    if (at.cut) {
      continue;
    }
    something = true;
    if (next.what == kind::data && !at.reader_gone) {
      at.arrived += next.bytes;
    } else if (next.what == kind::end) {
      at.at_end = hup_or_error = true;
    } else {
      at.cut = hup_or_error = true;
      at.read_error = ECONNRESET;
      (next.what == kind::data ? found.unwanted : found.reset) = true;
      found.behind_the_end = at.at_end;
    }
  }
  if (something) {
    tell(at.readers, {.readable = true, .hup_or_error = hup_or_error}, into);
  }
  bool room = false;
  while (at.partitions == 0 && !at.returning.empty() && at.returning.front().arrives <= current->now()) {
    at.used -= at.returning.front().bytes;
    at.returning.pop_front();
    room = true;
  }
  if (room && std::exchange(at.wants_room, false)) {
    tell(at.writers, {.writable = true}, into);
  }
  return found;
}

void network::follow(connection& link, pipe& at, const arrivals& what) {
  pipe& back = &at == &link.to_server ? link.to_client : link.to_server;
  news events;
  if (what.answered) {
    step(&back);
    link.established = what.error == 0;
    link.error = what.error;
    tell(back.writers, {.writable = true, .hup_or_error = what.error != 0}, events);
    publish(events);
  }
  if (what.reset) {
    events.clear();
    step(&back);
    if (!back.broken && !(what.behind_the_end && back.ended)) {  // otherwise it is closed already
      end_writing(back, what.behind_the_end ? EPIPE : ECONNRESET, events);
    }
    publish(events);
  }
  if (what.unwanted) {
    events.clear();
    step(&back);
    if (!back.broken) {
      end_writing(back, ECONNRESET, events);
      put(link, back, pipe::packet::kind::reset, {}, std::move(events));
    }
  }
}

void network::put(connection& link, pipe& to, pipe::packet::kind what, std::string bytes, news events) {
  platform::time_point arrives = current->now() + latency;
  if (!to.flying.empty()) {
    arrives = std::max(arrives, to.flying.back().arrives);
  }
  to.used += bytes.size();
  to.flying.push_back({arrives, what, std::move(bytes)});
  const arrivals now = arrive(to, events);
  publish(events);
  if (arrives > current->now()) {
    later({arrives, &link, &to});
  }
  follow(link, to, now);
}

void network::end_reading(pipe& which, int error, news& into) {
  which.arrived.clear();
  which.cut = true;
  which.read_error = error;
  tell(which.readers, {.readable = true, .hup_or_error = true}, into);
}

void network::end_writing(pipe& which, int error, news& into) {
  which.broken = true;
  which.write_error = error;
  tell(which.writers, {.writable = true, .hup_or_error = true}, into);
}

bool network::reset(socket& of, pipe& by) {
  pipe& in = of.in();
  pipe& out = of.out();
  if ((&by == &in ? in.at_end || in.cut : out.broken) || !fault(&sim::faults::reset)) {
    return false;
  }
  // The caller learns of the reset from the result.
  news events;
  if (&by == &in) {
    end_reading(in, 0, events);
    publish(events);
    events.clear();
    step(&out);
    end_writing(out, ECONNRESET, events);
  } else {
    end_writing(out, 0, events);
  }
  out.flying.clear();
  put(*of.link, out, pipe::packet::kind::reset, {}, std::move(events));
  if (&by == &out) {
    news others;
    step(&in);
    end_reading(in, ECONNRESET, others);
    publish(others);
  }
  return true;
}

std::int64_t network::send(socket& of, const message& what) {
  if (!of.writes) {
    return -EBADF;
  }
  const bool local = of.box != nullptr ? of.box->local : of.link != nullptr && of.link->local;
  passengers with;
  for (const int number : what.descriptors) {
    socket* const found = find(number);
    if (found == nullptr) {
      return -EBADF;
    }
    with.push_back(found);
  }
  if (local) {  // a socket of another kind ignores them
    for (socket* const each : with) {
      step(each);
      each->passed = true;
      ++each->references;
    }
  }
  const std::int64_t sent = of.box != nullptr ? send_datagram(of, what, local ? with : passengers())
                            : local           ? send_local(of, what.bytes, with)
                                              : send_tcp(of, what.bytes.data(), what.bytes.size());
  if (local && sent < 0) {
    release_all(with);
  }
  return sent;
}

std::int64_t network::receive(socket& of, void* into, std::size_t size, std::size_t max_descriptors, received& with) {
  if (of.box != nullptr) {
    return receive_datagram(of, into, size, max_descriptors, with);
  }
  const bool local = of.link != nullptr && of.link->local;
  if (!of.reads) {
    return -EBADF;
  }
  return local ? receive_local(of, into, size, max_descriptors, with) : receive_tcp(of, into, size);
}

std::int64_t network::receive_tcp(socket& of, void* into, std::size_t size) {
  if (of.link == nullptr) {
    return -ENOTCONN;
  }
  pipe& from = of.in();
  step(&from);
  if (reset(of, from)) {
    return -ECONNRESET;
  }
  std::size_t count = std::min(size, from.arrived.size());
  if (count == 0) {
    if (size == 0 || from.at_end) {
      return 0;
    }
    if (const int error = std::exchange(from.read_error, 0); error != 0) {
      step(&of.out());
      of.out().write_error = 0;
      return -error;
    }
    return from.cut || from.not_read ? 0 : -EAGAIN;
  }
  news events;
  if (count > 1 && fault(&sim::faults::short_transfers)) {
    // A reader of a stream may understand a short read as the lack of further data, so it is notified of the rest as if
    // that came just now.
    count = 1;
    tell(from.readers, {.readable = true}, events);
  }
  std::memcpy(into, from.arrived.data(), count);
  from.arrived.erase(0, count);
  const platform::time_point known = current->now() + latency;
  from.returning.push_back({known, count});
  static_cast<void>(arrive(from, events));
  publish(events);
  if (known > current->now()) {
    later({known, of.link, &from});
  }
  return static_cast<std::int64_t>(count);
}

std::int64_t network::send_tcp(socket& of, const void* from, std::size_t size) {
  if (of.link == nullptr) {
    return -ENOTCONN;
  }
  pipe& to = of.out();
  step(&to);
  if (reset(of, to)) {
    return -ECONNRESET;
  }
  if (!of.server && !of.link->established) {
    return of.link->error != 0 ? -std::exchange(of.link->error, 0) : -EAGAIN;
  }
  if (const int error = std::exchange(to.write_error, 0); error != 0) {
    step(&of.in());
    of.in().read_error = 0;
    return -error;
  }
  if (to.broken || to.ended) {
    return -EPIPE;
  }
  std::size_t count = std::min(size, pipe::capacity - to.used);
  to.wants_room = to.wants_room || count < size;
  if (count == 0) {
    return size == 0 ? 0 : -EAGAIN;
  }
  if (count > 1 && fault(&sim::faults::short_transfers)) {
    count = 1;
  }
  put(*of.link, to, pipe::packet::kind::data, {static_cast<const char*>(from), count}, {});
  return static_cast<std::int64_t>(count);
}

int network::shutdown(socket& of, int how) {
  if (of.link == nullptr) {
    return -ENOTCONN;
  }
  pipe& in = of.in();
  pipe& out = of.out();
  if (of.link->local) {
    if (how != SHUT_WR) {
      step(&in);
      end_local(in, false, 0);
    }
    if (how != SHUT_RD) {
      step(&out);
      end_local(out, false, 0);
    }
    return 0;
  }
  news events;
  step(&in);
  const bool over = in.at_end;
  if (how != SHUT_WR) {
    in.not_read = true;
    tell(in.readers, {.readable = true, .hup_or_error = true}, events);
  }
  publish(events);
  step(&out);
  if (out.broken || (over && out.ended)) {
    return -ENOTCONN;
  }
  if (how != SHUT_RD && !std::exchange(out.ended, true)) {
    put(*of.link, out, pipe::packet::kind::end, {}, {});
  }
  if (out.ended) {
    step(&in);
    in.reader_gone = in.not_read;
  }
  return 0;
}

void network::close(socket& of) {
  if (of.at != nullptr) {
    port& at = *of.at;
    step(&at);
    at.bound = false;
    at.box = nullptr;
    if (of.listens) {
      at.listening = false;
      for (connection* const each : std::exchange(at.queue, {})) {
        if (each->local) {
          close_local(*each, true, false);
          continue;
        }
        step(&each->to_server);
        each->to_server.reader_gone = true;
        step(&each->to_client);
        each->to_client.broken = true;
        put(*each, each->to_client, pipe::packet::kind::reset, {}, {});
      }
      if (at.partitions == 0) {
        for (connection* const each : std::exchange(at.waiting, {})) {
          arrive(*each);
        }
      }
    }
  }
  if (of.box != nullptr) {
    close_datagrams(of);
  }
  if (of.link == nullptr) {
    return;
  }
  if (of.link->local) {
    close_local(*of.link, of.server, true);
    return;
  }
  if (of.slow) {
    step(of.link->to);
    auto& stage = of.link->now;
    if (stage == connection::stage::travelling || stage == connection::stage::waiting) {
      stage = connection::stage::over;
      std::erase(of.link->to->waiting, of.link);
      return;
    }
  }
  pipe& from = of.in();
  step(&from);
  from.reader_gone = true;
  const bool unread = !from.arrived.empty();
  const bool over = from.at_end;
  from.arrived.clear();
  pipe& to = of.out();
  step(&to);
  const bool ended = std::exchange(to.ended, true);
  if (to.broken || (ended && (over || !unread))) {
    return;
  }
  to.broken = unread;
  put(*of.link, to, unread ? pipe::packet::kind::reset : pipe::packet::kind::end, {}, {});
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
