// What epoll allows: an echo server that is a bare edge-triggered loop and does nothing else.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "../echo_listen.hpp"

namespace {

/// Sends the front of `unsent`; returns whether all of it went out.
bool send_all(int socket, std::string& unsent) {
  while (!unsent.empty()) {
    const ssize_t put = ::send(socket, unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (put <= 0) {
      return false;
    }
    unsent.erase(0, static_cast<std::size_t>(put));
  }
  return true;
}

/// Sends back what comes until the socket is empty or full. Returns whether the connection stands.
bool echo(int socket, std::string& unsent) {
  char buffer[16384];
  while (send_all(socket, unsent)) {
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got <= 0) {
      return got < 0 && errno == EAGAIN;
    }
    const ssize_t put = ::send(socket, buffer, static_cast<std::size_t>(got), MSG_NOSIGNAL);
    if (put != got) {
      unsent.assign(buffer + (put > 0 ? put : 0), buffer + got);
    }
    if (static_cast<std::size_t>(got) < sizeof buffer && unsent.empty()) {
      return true;
    }
  }
  return errno == EAGAIN;
}

}  // namespace

int main(int, char** argv) {
  const int listener = bench::listen_at(argv[1]);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  ::epoll_event interest{};
  interest.events = EPOLLIN;
  interest.data.fd = listener;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &interest);
  std::vector<std::string> unsent;
  for (;;) {
    ::epoll_event events[256];
    const int count = ::epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < count; ++i) {
      const int socket = events[i].data.fd;
      if (socket == listener) {
        const int made = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (made >= 0) {
          interest.events = EPOLLIN | EPOLLOUT | EPOLLET;
          interest.data.fd = made;
          ::epoll_ctl(epoll, EPOLL_CTL_ADD, made, &interest);
          unsent.resize(std::max(unsent.size(), static_cast<std::size_t>(made) + 1));
        }
      } else if (!echo(socket, unsent[static_cast<std::size_t>(socket)])) {
        unsent[static_cast<std::size_t>(socket)].clear();
        ::close(socket);
      }
    }
  }
}
