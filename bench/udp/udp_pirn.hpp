// pirn's servers that send datagrams back: one fiber.
#pragma once

#include <span>
#include <vector>

#include "../engine_pirn.hpp"
#include "pirn/net/udp_socket.hpp"

namespace bench {

constexpr std::size_t largest_datagram = 2048;

/// One datagram a call.
inline void echo_singly(pirn::udp_socket& socket) {
  char buffer[largest_datagram];
  while (const auto got = socket.receive(buffer, sizeof buffer)) {
    static_cast<void>(socket.send_to(got->from, buffer, got->size));
  }
}

/// As many datagrams a call as have come, up to 32.
inline void echo_batches(pirn::udp_socket& socket) {
  constexpr std::size_t most = pirn::udp_socket::max_batch;
  std::vector<char> memory(most * largest_datagram);
  std::vector<pirn::udp_socket::slot> slots;
  for (std::size_t i = 0; i < most; ++i) {
    slots.push_back({&memory[i * largest_datagram], largest_datagram});
  }
  pirn::udp_socket::datagram answers[most];
  while (const auto got = socket.receive_batch(slots)) {
    for (std::size_t i = 0; i < *got; ++i) {
      answers[i] = {slots[i].buffer, slots[i].what.size, slots[i].what.from};
    }
    for (std::span<const pirn::udp_socket::datagram> left(answers, *got); !left.empty();) {
      left = left.subspan(socket.send_batch(left).value_or(1));
    }
  }
}

inline int serve_udp(pirn::engine_kind engine, const char* port, void (*echo)(pirn::udp_socket&)) {
  return pirn::runtime({.workers = 1, .engine = engine}).run([port, echo] {
    auto socket =
        pirn::udp_socket::bind({pirn::ip_address::loopback_v4(), static_cast<std::uint16_t>(std::atoi(port))});
    if (!socket) {
      std::fprintf(stderr, "cannot bind: %s\n", socket.error().message().c_str());
      return EXIT_FAILURE;
    }
    echo(*socket);
    return EXIT_SUCCESS;
  });
}

}  // namespace bench
