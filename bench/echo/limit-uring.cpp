// What io_uring allows: an echo server that is a bare loop around one ring and does nothing else. It receives by
// multishot requests into provided buffers, and sends from these; the kernel is entered once for all of it.
#include <sys/socket.h>

#include <algorithm>
#include <deque>

#include "../bare_ring.hpp"
#include "../echo_listen.hpp"

namespace {

using bench::bare::completion;

struct part {
  std::uint16_t buffer;
  std::uint32_t bytes, sent;
};
struct connection {
  std::deque<part> unsent;  ///< the first one is being sent
  bool receives = false;
};

enum job : std::uint8_t { accepts, receives, sends };

class server {
 public:
  explicit server(int listener) : listener_(listener) {}

  [[noreturn]] void run() {
    ring_.accept(accepts, listener_);
    ring_.run([this](const completion& of) { end(of); });
  }

 private:
  void receive(int socket) {
    ring_.receive(receives, socket);
    connections_[static_cast<std::size_t>(socket)].receives = true;
  }

  void send(int socket) {
    const part& first = connections_[static_cast<std::size_t>(socket)].unsent.front();
    ring_.send(sends, socket, ring_.buffer(first.buffer) + first.sent, first.bytes - first.sent);
  }

  void end(const completion& of) {
    const int socket = static_cast<int>(of.user_data & 0xffffffff);
    switch (of.user_data >> 32) {
      case accepts:
        if (of.result >= 0) {
          connections_.resize(std::max(connections_.size(), static_cast<std::size_t>(of.result) + 1));
          receive(of.result);
        }
        if ((of.flags & bench::bare::more_follow) == 0) {
          ring_.accept(accepts, listener_);
        }
        return;
      case receives:
        received(socket, of);
        return;
      case sends:
        sent(socket, of.result);
    }
  }

  void received(int socket, const completion& of) {
    connection& from = connections_[static_cast<std::size_t>(socket)];
    from.receives = (of.flags & bench::bare::more_follow) != 0;
    if (of.result > 0) {
      from.unsent.push_back({static_cast<std::uint16_t>(of.flags >> 16), static_cast<std::uint32_t>(of.result), 0});
      if (from.unsent.size() == 1) {
        send(socket);
      }
    } else if ((of.flags & bench::bare::has_buffer) != 0) {
      ring_.give_back(static_cast<std::uint16_t>(of.flags >> 16));
    }
    if (!from.receives && (of.result > 0 || of.result == -ENOBUFS)) {
      receive(socket);
    }
    close_if_over(socket);
  }

  void sent(int socket, std::int32_t result) {
    connection& to = connections_[static_cast<std::size_t>(socket)];
    part& first = to.unsent.front();
    first.sent = result > 0 ? first.sent + static_cast<std::uint32_t>(result) : first.bytes;
    if (first.sent == first.bytes) {
      ring_.give_back(first.buffer);
      to.unsent.pop_front();
    }
    if (!to.unsent.empty()) {
      send(socket);
    }
    close_if_over(socket);
  }

  void close_if_over(int socket) {
    connection& over = connections_[static_cast<std::size_t>(socket)];
    if (!over.receives && over.unsent.empty()) {
      ::close(socket);
    }
  }

  const int listener_;
  bench::bare::ring ring_;
  std::vector<connection> connections_;
};

}  // namespace

int main(int, char** argv) { server(bench::listen_at(argv[1])).run(); }
