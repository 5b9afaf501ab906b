// The listening socket of the bare servers of the workload `echo`.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace bench {

inline int listen_at(const char* port) {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // accepted sockets inherit it
  ::sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(made, reinterpret_cast<::sockaddr*>(&at), sizeof at) != 0 || ::listen(made, 4096) != 0) {
    std::perror("cannot listen");
    std::exit(EXIT_FAILURE);
  }
  return made;
}

}  // namespace bench
