// A TCP proxy: carries the bytes of each connection to another port of this machine, and the answers back. An end of
// one direction is passed on while the other direction continues (half-close). Ends on SIGINT or SIGTERM.
//     tcp_proxy PORT TARGET_PORT
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/io/copy.hpp"
#include "pirn/io/signal_set.hpp"
#include "pirn/net/acceptor.hpp"

namespace {

pirn::endpoint on_this_machine(const char* port) {
  return {pirn::ip_address::loopback_v4(), static_cast<std::uint16_t>(std::atoi(port))};
}

/// Carries one direction. After an error it closes both connections, which ends the other direction too.
void carry(pirn::tcp_stream& from, pirn::tcp_stream& to) {
  if (!pirn::copy(from, to) || !to.shutdown(pirn::shutdown_half::write)) {
    from.close();
    to.close();
  }
}

void serve(pirn::tcp_stream client, const pirn::endpoint& target) {
  if (auto server = pirn::tcp_stream::connect(target, std::chrono::seconds(5))) {
    pirn::scope both;  // which a stop of this fiber ends
    both.all([&] { carry(*server, client); }, [&] { carry(client, *server); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const pirn::endpoint target = on_this_machine(argc > 2 ? argv[2] : "7777");
  pirn::signal_set signals({SIGINT, SIGTERM});
  pirn::runtime runtime;
  return runtime.run([&] {
    auto listener = pirn::tcp_listener::listen(on_this_machine(argc > 1 ? argv[1] : "7000"));
    if (!listener) {
      std::fprintf(stderr, "tcp_proxy: cannot listen: %s\n", listener.error().message().c_str());
      return EXIT_FAILURE;
    }
    std::printf("forwarding %s\n", listener->local_endpoint()->to_string().c_str());
    std::fflush(stdout);
    // A connection has two descriptors. The rest of the limit (`ulimit -n`) is for the workers and the listener.
    pirn::acceptor clients({.max_connections = static_cast<std::size_t>(::sysconf(_SC_OPEN_MAX)) / 3});
    const auto serve_one = [&](pirn::tcp_stream client) { serve(std::move(client), target); };
    pirn::fiber accepting = pirn::spawn([&] { static_cast<void>(clients.run(*listener, serve_one)); });
    static_cast<void>(signals.wait());
    return EXIT_SUCCESS;  // the destructor of `accepting` stops and joins it, and with it the clients' fibers
  });
}
