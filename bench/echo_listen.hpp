// The listening socket of the servers of the workload `echo` that have no library for it.
#pragma once

#include <netinet/tcp.h>

#include <cstdio>

#include "address.hpp"

namespace bench {

inline int listen_at(const char* text) {
  const address at(text);
  const int made = ::socket(at.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (at.family == AF_INET) {
    const int on = 1;
    ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // accepted sockets inherit it
  }
  if (::bind(made, at.native(), at.size) != 0 || ::listen(made, 4096) != 0) {
    std::perror("cannot listen");
    std::exit(EXIT_FAILURE);
  }
  return made;
}

}  // namespace bench
