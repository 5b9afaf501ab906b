// Where a server of the bench is, for its driver and for servers that are bare loops.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace bench {

/// An address given as text: a port of 127.0.0.1, or the path of a Unix socket.
struct address {
  explicit address(const char* text) {
    if (text[0] == '/') {
      family = of_unix.sun_family = AF_UNIX;
      std::strncpy(of_unix.sun_path, text, sizeof of_unix.sun_path - 1);
      size = sizeof of_unix;
    } else {
      family = of_ip.sin_family = AF_INET;
      of_ip.sin_port = htons(static_cast<std::uint16_t>(std::atoi(text)));
      of_ip.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof of_ip;
    }
  }
  [[nodiscard]] const ::sockaddr* native() const { return reinterpret_cast<const ::sockaddr*>(&of_unix); }

  union {
    ::sockaddr_un of_unix{};
    ::sockaddr_in of_ip;
  };
  ::socklen_t size;
  int family;
};

}  // namespace bench
