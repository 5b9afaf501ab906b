// The servers of pirn in the workload `echo`: one worker, a fiber for each connection.
#pragma once

#include "engine_pirn.hpp"
#include "pirn/net/acceptor.hpp"
#include "pirn/net/unix_listener.hpp"

namespace bench {

template <class Listener>
int serve_clients_of(pirn::result<Listener> listener) {
  if (!listener) {
    std::fprintf(stderr, "cannot listen: %s\n", listener.error().message().c_str());
    return EXIT_FAILURE;
  }
  pirn::acceptor clients;
  static_cast<void>(clients.run(*listener, [](auto stream) {
    while (auto view = stream.lend()) {
      if (view->empty() || !stream.write(view->text())) {
        return;
      }
      view->consume(view->bytes().size());
    }
  }));
  return EXIT_SUCCESS;
}

/// Runs at a port, or at the path of a Unix socket.
inline int serve_echo(pirn::engine_kind engine, const char* address) {
  pirn::runtime runtime({.workers = 1, .engine = engine});
  return runtime.run([address] {
    if (address[0] == '/') {
      return serve_clients_of(pirn::unix_listener::listen(pirn::unix_address::parse(address).value()));
    }
    const auto port = static_cast<std::uint16_t>(std::atoi(address));
    return serve_clients_of(pirn::tcp_listener::listen({pirn::ip_address::loopback_v4(), port}, {.backlog = 4096}));
  });
}

}  // namespace bench
