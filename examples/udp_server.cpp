// A UDP server: sends back each datagram, many in one system call. Ends on SIGINT or SIGTERM.
//     udp_server [PORT]
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/signal_set.hpp"
#include "pirn/net/udp_socket.hpp"

namespace {

void echo(pirn::udp_socket& socket) {
  constexpr std::size_t largest = 1500;  // longer datagrams are dropped
  std::vector<char> memory(largest * pirn::udp_socket::max_batch);
  std::vector<pirn::udp_socket::slot> slots;
  for (std::size_t i = 0; i < pirn::udp_socket::max_batch; ++i) {
    slots.push_back({&memory[i * largest], largest});
  }
  std::vector<pirn::udp_socket::datagram> answers;
  while (const auto got = socket.receive_batch(slots)) {
    answers.clear();
    for (std::size_t i = 0; i < *got; ++i) {
      if (const auto& what = slots[i].what; !what.truncated) {
        answers.push_back({slots[i].buffer, what.size, what.from});
      }
    }
    for (std::span<const pirn::udp_socket::datagram> left = answers; !left.empty();) {
      const auto sent = socket.send_batch(left);
      left = left.subspan(sent.value_or(1));  // the answer that cannot be sent is lost, as any datagram may be
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 7777;
  pirn::signal_set signals({SIGINT, SIGTERM});
  pirn::runtime runtime;
  return runtime.run([&] {
    auto socket = pirn::udp_socket::bind({pirn::ip_address::loopback_v4(), static_cast<std::uint16_t>(port)});
    if (!socket) {
      std::fprintf(stderr, "udp_server: cannot bind: %s\n", socket.error().message().c_str());
      return EXIT_FAILURE;
    }
    std::printf("echoing on %s\n", socket->local_endpoint()->to_string().c_str());
    std::fflush(stdout);
    pirn::fiber echoing = pirn::spawn([&] { echo(*socket); });
    static_cast<void>(signals.wait());
    return EXIT_SUCCESS;  // the destructor of `echoing` stops and joins it
  });
}
