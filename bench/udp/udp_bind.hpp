// The socket of the bare servers of the workload `udp`.
#pragma once

#include <cstdio>

#include "../address.hpp"

namespace bench {

constexpr std::size_t largest_datagram = 2048;

inline int bind_at(const char* port) {
  const address at(port);
  const int made = ::socket(at.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (::bind(made, at.native(), at.size) != 0) {
    std::perror("cannot bind");
    std::exit(EXIT_FAILURE);
  }
  return made;
}

}  // namespace bench
