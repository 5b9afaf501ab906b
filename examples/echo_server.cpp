// An echo server: sends back the bytes that it receives, and cuts off a client that is silent for a minute. Ends on
// SIGINT or SIGTERM.
//     echo_server [PORT]
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/signal_set.hpp"
#include "pirn/net/acceptor.hpp"

namespace {

void echo(pirn::tcp_stream stream) {
  char buffer[4096];
  for (;;) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    const auto got = stream.read(buffer, sizeof buffer, deadline);
    if (!got || *got == 0 || !stream.write(buffer, *got, deadline)) {
      return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 7777;
  pirn::signal_set signals({SIGINT, SIGTERM});
  pirn::runtime runtime;
  return runtime.run([&] {
    auto listener = pirn::tcp_listener::listen({pirn::ip_address::loopback_v4(), static_cast<std::uint16_t>(port)});
    if (!listener) {
      std::fprintf(stderr, "echo_server: cannot listen: %s\n", listener.error().message().c_str());
      return EXIT_FAILURE;
    }
    std::printf("echoing on %s\n", listener->local_endpoint()->to_string().c_str());
    std::fflush(stdout);
    const auto log = [](const pirn::accept_trouble& trouble) {
      std::fprintf(stderr, "echo_server: %s\n", trouble.text().c_str());
    };
    pirn::acceptor clients({.accept_failed = log, .accept_failed_every = std::chrono::seconds(5)});
    pirn::fiber accepting = pirn::spawn([&] { static_cast<void>(clients.run(*listener, echo)); });
    static_cast<void>(signals.wait());
    return EXIT_SUCCESS;  // the destructor of `accepting` stops and joins it, and with it the clients' fibers
  });
}
