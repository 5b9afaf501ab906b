// What the kernel allows with up to 32 datagrams a call: a bare loop of a blocking socket.
#include "udp_bind.hpp"

int main(int, char** argv) {
  constexpr unsigned most = 32;
  static char memory[most][bench::largest_datagram];
  static ::sockaddr_in from[most];
  static ::iovec parts[most];
  static ::mmsghdr batch[most];
  const int socket = bench::bind_at(argv[1]);
  for (;;) {
    for (unsigned i = 0; i < most; ++i) {
      parts[i] = {memory[i], bench::largest_datagram};
      batch[i].msg_hdr = {&from[i], sizeof from[i], &parts[i], 1, nullptr, 0, 0};
    }
    const int got = ::recvmmsg(socket, batch, most, MSG_WAITFORONE, nullptr);
    for (int i = 0; i < got; ++i) {
      parts[i].iov_len = batch[i].msg_len;
    }
    for (int sent = 0; sent < got;) {
      const int more = ::sendmmsg(socket, batch + sent, static_cast<unsigned>(got - sent), 0);
      sent += more > 0 ? more : 1;  // an answer that cannot be sent is lost
    }
  }
}
