// What connections carry: the operations of a network on pipes.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/execution.hpp"
#include "sim/network.hpp"

namespace pirn::inline PIRN_ABI::sim::detail {

namespace {

bool fault(bool wanted) { return wanted && platform::checked::watching && current->fault(true); }

}  // namespace

void network::arrive(pipe& at, news& into) {
  bool something = false, irregular = false;
  while (at.partitions == 0 && !at.flying.empty() && at.flying.front().arrives <= current->now()) {
    const pipe::packet next = std::move(at.flying.front());
    at.flying.pop_front();
    if (at.reader_gone) {
      at.used -= next.bytes.size();
      if (next.what == pipe::packet::kind::data && !at.broken) {
        at.broken = true;
        tell(at.writers, {.writable = true, .irregular = true}, into);
      }
      continue;
    }
    something = true;
    at.arrived += next.bytes;
    if (next.what != pipe::packet::kind::data) {
      at.at_end = irregular = true;
      at.read_error = next.what == pipe::packet::kind::reset ? ECONNRESET : at.read_error;
    }
  }
  if (something) {
    tell(at.readers, {.readable = true, .irregular = irregular}, into);
  }
}

std::optional<platform::time_point> network::put(pipe& to, pipe::packet::kind what, std::string bytes,
                                                 news& into) const {
  platform::time_point arrives = current->now() + latency;
  if (!to.flying.empty()) {
    arrives = std::max(arrives, to.flying.back().arrives);
  }
  to.used += bytes.size();
  to.flying.push_back({arrives, what, std::move(bytes)});
  arrive(to, into);
  return arrives > current->now() ? std::optional(arrives) : std::nullopt;
}

void network::cut(pipe& which, news& into) {
  which.flying.clear();
  which.used = which.arrived.size();
  which.broken = which.at_end = true;
  which.read_error = which.write_error = ECONNRESET;
  tell(which.readers, {.readable = true, .irregular = true}, into);
  tell(which.writers, {.writable = true, .irregular = true}, into);
}

bool network::reset(socket& of, pipe& by) {
  if (by.broken || !fault(current->wants().reset)) {
    return false;
  }
  news told;
  cut(by, told);
  (&by == &of.in() ? by.read_error : by.write_error) = 0;  // the caller tells
  pipe& other = &by == &of.in() ? of.out() : of.in();
  step(&other);
  cut(other, told);
  publish(told);
  return true;
}

std::int64_t network::receive(socket& of, void* into, std::size_t size) {
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
    if (size != 0 && from.read_error != 0) {
      return -std::exchange(from.read_error, 0);
    }
    return size == 0 || from.at_end || from.not_read ? 0 : -EAGAIN;
  }
  news told;
  if (count > 1 && fault(current->wants().short_transfers)) {
    // A reader of a stream may take less than it wanted to mean that there was no more: the rest comes just now.
    count = 1;
    tell(from.readers, {.readable = true}, told);
  }
  std::memcpy(into, from.arrived.data(), count);
  from.arrived.erase(0, count);
  from.used -= count;
  if (std::exchange(from.wants_room, false)) {
    tell(from.writers, {.writable = true}, told);
  }
  publish(told);
  return static_cast<std::int64_t>(count);
}

std::int64_t network::send(socket& of, const void* from, std::size_t size) {
  if (of.link == nullptr) {
    return -ENOTCONN;
  }
  pipe& to = of.out();
  step(&to);
  if (reset(of, to)) {
    return -ECONNRESET;
  }
  if (to.write_error != 0) {
    return -std::exchange(to.write_error, 0);
  }
  if (to.broken || to.ended) {
    return -EPIPE;
  }
  std::size_t count = std::min(size, pipe::capacity - to.used);
  to.wants_room = to.wants_room || count < size;
  if (count == 0) {
    return size == 0 ? 0 : -EAGAIN;
  }
  if (count > 1 && fault(current->wants().short_transfers)) {
    count = 1;
  }
  news told;
  const auto arrives = put(to, pipe::packet::kind::data, {static_cast<const char*>(from), count}, told);
  publish(told);
  if (arrives) {
    later(*arrives, *of.link, &to);
  }
  return static_cast<std::int64_t>(count);
}

int network::shutdown(socket& of, int how) {
  if (of.link == nullptr) {
    return -ENOTCONN;
  }
  if (how != SHUT_RD) {
    pipe& to = of.out();
    news told;
    step(&to);
    if (to.broken) {
      return -ENOTCONN;
    }
    std::optional<platform::time_point> arrives;
    if (!std::exchange(to.ended, true)) {
      arrives = put(to, pipe::packet::kind::end, {}, told);
    }
    publish(told);
    if (arrives) {
      later(*arrives, *of.link, &to);
    }
  }
  if (how != SHUT_WR) {
    news told;
    step(&of.in());
    of.in().not_read = true;
    tell(of.in().readers, {.readable = true, .irregular = true}, told);
    publish(told);
  }
  return 0;
}

void network::close(socket& of) {
  of.open = false;
  news told;
  if (of.at != nullptr) {
    port& at = *of.at;
    step(&at);
    at.bound = false;
    if (of.listens) {
      at.listening = false;
      for (connection* const each : std::exchange(at.queue, {})) {
        for (pipe* const side : {&each->to_server, &each->to_client}) {
          step(side);
          cut(*side, told);
        }
      }
      if (at.partitions == 0) {
        for (connection* const each : std::exchange(at.waiting, {})) {
          arrive(*each);
        }
      }
    }
  }
  if (of.link == nullptr) {
    publish(told);
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
  if (unread) {
    from.used -= from.arrived.size();
    from.arrived.clear();
    from.broken = true;
    from.write_error = ECONNRESET;
    tell(from.writers, {.writable = true, .irregular = true}, told);
  }
  pipe& to = of.out();
  step(&to);
  std::optional<platform::time_point> arrives;
  if (!to.broken && (unread || !to.ended)) {
    arrives = put(to, unread ? pipe::packet::kind::reset : pipe::packet::kind::end, {}, told);
  }
  to.ended = true;
  publish(told);
  if (arrives) {
    later(*arrives, *of.link, &to);
  }
}

}  // namespace pirn::inline PIRN_ABI::sim::detail
