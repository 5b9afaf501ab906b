// The servers of pirn in the workload `echo`: one worker, a fiber for each connection. They are started with a port.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "pirn/fiber/runtime.hpp"
#include "pirn/net/acceptor.hpp"

namespace bench {

inline int serve_echo(pirn::engine_kind engine, const char* port) {
  pirn::runtime runtime({.workers = 1, .engine = engine});
  return runtime.run([port] {
    auto listener = pirn::tcp_listener::listen(
        {pirn::ip_address::loopback_v4(), static_cast<std::uint16_t>(std::atoi(port))}, {.backlog = 4096});
    if (!listener) {
      std::fprintf(stderr, "cannot listen: %s\n", listener.error().message().c_str());
      return EXIT_FAILURE;
    }
    pirn::acceptor clients;
    static_cast<void>(clients.run(*listener, [](pirn::tcp_stream stream) {
      char buffer[16384];
      while (const auto got = stream.read(buffer, sizeof buffer)) {
        if (*got == 0 || !stream.write(buffer, *got)) {
          return;
        }
      }
    }));
    return EXIT_SUCCESS;
  });
}

}  // namespace bench
