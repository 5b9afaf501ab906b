// Connections of Unix sockets in an exploration: all that one end does is known at the other at once.
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "sim/execution.hpp"
#include "sim/network.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

int network::open_pair(int type, int* numbers) {
  socket* ends[2];
  for (int i = 0; i < 2; ++i) {
    numbers[i] = open(AF_UNIX, type);
    ends[i] = find(numbers[i]);
  }
  if (type == SOCK_DGRAM) {
    ends[0]->box->peer = ends[1]->box;
    ends[1]->box->peer = ends[0]->box;
    return 0;
  }
  connection& link = connections_.emplace_back();
  link.local = link.established = true;
  link.client.ss_family = link.server.ss_family = AF_UNIX;
  ends[0]->link = ends[1]->link = &link;
  ends[1]->server = true;
  return 0;
}

int network::open_pipe(int* numbers) {
  open_pair(SOCK_STREAM, numbers);
  find(numbers[0])->writes = false;
  find(numbers[1])->reads = false;
  return 0;
}

int network::connect_local(socket& of, const ::sockaddr_storage& to) {
  port& at = place_of(to, false);
  step(&at);
  if (!at.bound && !at.name.starts_with('@')) {
    return -ENOENT;
  }
  if (!at.bound || (!at.listening && at.box == nullptr)) {
    return -ECONNREFUSED;
  }
  if (at.box != nullptr) {
    return -EPROTOTYPE;
  }
  if (at.queue.size() >= at.backlog) {
    return -EAGAIN;  // and no event says when there is a place
  }
  connection& link = connections_.emplace_back();
  link.to = &at;
  link.local = link.established = true;
  link.server = to;
  link.client = of.name;
  of.link = &link;
  link.now = connection::stage::queued;
  at.queue.push_back(&link);
  news told;
  tell(at.listeners, {.readable = true}, told);
  publish(told);
  return 0;
}

std::int64_t network::send_local(socket& of, std::string_view bytes, passengers with) {
  pipe& to = of.out();
  step(&to);
  if (to.ended) {
    return -EPIPE;
  }
  std::size_t count = std::min(bytes.size(), pipe::capacity - to.used);
  to.wants_room = to.wants_room || count < bytes.size();
  const bool whole = !of.reads && bytes.size() <= PIPE_BUF;  // a pipe does not split these
  count = whole && count < bytes.size() ? 0 : count;
  if (count == 0) {
    return bytes.empty() ? 0 : -EAGAIN;
  }
  if (count > 1 && !whole && fault(&sim::faults::short_transfers)) {
    count = 1;
  }
  to.used += count;
  to.arrived += bytes.substr(0, count);
  to.records.push_back({count, std::move(with)});
  news told;
  tell(to.readers, {.readable = true}, told);
  publish(told);
  return static_cast<std::int64_t>(count);
}

std::int64_t network::receive_local(socket& of, void* into, std::size_t size, std::size_t max_descriptors,
                                    received& with) {
  pipe& from = of.in();
  step(&from);
  if (from.arrived.empty() || size == 0) {
    if (const int error = std::exchange(from.read_error, 0); error != 0) {
      return -error;
    }
    return size == 0 || from.at_end ? 0 : -EAGAIN;
  }
  news told;
  if (size > 1 && from.arrived.size() > 1 && fault(&sim::faults::short_transfers)) {
    size = 1;
    tell(from.readers, {.readable = true}, told);
  }
  // A call joins what several calls have sent, up to the end of the first part that carries descriptors.
  std::size_t count = 0;
  passengers arriving;
  while (count < size && !from.records.empty() && arriving.empty()) {
    pipe::record& next = from.records.front();
    const std::size_t taken = std::min(size - count, next.bytes);
    count += taken;
    next.bytes -= taken;
    arriving = std::exchange(next.with, {});
    if (next.bytes == 0) {
      from.records.pop_front();
    }
  }
  std::memcpy(into, from.arrived.data(), count);
  from.arrived.erase(0, count);
  from.used -= count;
  if (std::exchange(from.wants_room, false)) {
    tell(from.writers, {.writable = true}, told);
  }
  publish(told);
  land(arriving, max_descriptors, with);
  return static_cast<std::int64_t>(count);
}

passengers network::end_local(pipe& which, bool reader_gone, int error) {
  which.ended = which.at_end = true;
  which.read_error = error != 0 ? error : which.read_error;
  passengers left;
  if (reader_gone) {
    which.arrived.clear();
    for (const pipe::record& each : std::exchange(which.records, {})) {
      left.insert(left.end(), each.with.begin(), each.with.end());
    }
  }
  news told;
  tell(which.readers, {.readable = true, .hup_or_error = true}, told);
  tell(which.writers, {.writable = true, .hup_or_error = true}, told);
  publish(told);
  return left;
}

void network::close_local(connection& link, bool server, bool accepted) {
  pipe& from = server ? link.to_server : link.to_client;
  step(&from);
  const bool unread = !from.arrived.empty();
  const passengers left = end_local(from, true, 0);
  pipe& to = server ? link.to_client : link.to_server;
  step(&to);
  end_local(to, false, unread || !accepted ? ECONNRESET : 0);
  release_all(left);
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
