// What the kernel allows with one datagram a call: a bare loop of a blocking socket.
#include "udp_bind.hpp"

int main(int, char** argv) {
  const int socket = bench::bind_at(argv[1]);
  char buffer[bench::largest_datagram];
  for (;;) {
    ::sockaddr_in from;
    ::socklen_t length = sizeof from;
    auto* const name = reinterpret_cast<::sockaddr*>(&from);
    const ssize_t got = ::recvfrom(socket, buffer, sizeof buffer, 0, name, &length);
    if (got >= 0) {
      ::sendto(socket, buffer, static_cast<std::size_t>(got), 0, name, length);
    }
  }
}
