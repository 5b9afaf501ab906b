// pirn::net on the network of an exploration.
#include "pirn/sim/network.hpp"

#include <gtest/gtest.h>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/net/tcp_listener.hpp>
#include <pirn/net/tcp_stream.hpp>

#include <optional>
#include <string>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;
using pirn_test::run_fibers;
using sim::outcome;

namespace {

constexpr std::uint16_t port = 80;
const endpoint here{ip_address::loopback_v4(), port};

tcp_listener listening() { return std::move(tcp_listener::listen(here).value()); }

/// Sends back what comes until the stream ends.
void echo(tcp_stream stream) {
  char buffer[64];
  for (;;) {
    const auto got = stream.read(buffer, sizeof buffer);
    if (!got || *got == 0 || !stream.write({buffer, *got})) {
      return;
    }
  }
}

/// Whether what was sent has come back.
bool ask(std::string_view text, platform::time_point deadline = platform::never) {
  auto stream = tcp_stream::connect(here, deadline);
  std::string answer(text.size(), ' ');
  return stream && stream->write(text, deadline) && stream->read_exactly(answer.data(), answer.size(), deadline) &&
         answer == text;
}

TEST(network, an_echo_from_another_worker) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] { echo(*listener.accept()); }, [] { sim::check(ask("hello")); }});
      },
      {.preemptions = 1});
}

}  // namespace
