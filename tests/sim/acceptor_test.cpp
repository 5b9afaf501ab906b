// An acceptor, its connections and its end, on the network of an exploration.
#include "pirn/net/acceptor.hpp"

#include <gtest/gtest.h>
#include <pirn/fiber/this_fiber.hpp>

#include <optional>

#include "sim/fibers.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_fibers;

namespace {

tcp_listener listening() { return tcp_listener::listen({ip_address::loopback_v4(), 80}).value(); }

void answer(tcp_stream stream) {
  char byte;
  if (const auto got = stream.read(&byte, 1); got && *got == 1) {
    static_cast<void>(stream.write(&byte, 1));
  }
}

/// Returns whether there was an answer. Without one the connection has ended.
bool ask() {
  auto stream = tcp_stream::connect({ip_address::loopback_v4(), 80});
  char byte = 0;
  return stream && stream->write("x") && stream->read_exactly(&byte, 1) && byte == 'x';
}

TEST(acceptor, is_left_by_all_before_it_returns) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] {
                     std::optional<acceptor> all(std::in_place);
                     fiber accepting =
                         spawn([&] { sim::check(all->run(listener, answer) == io_error::stopped); }, {.worker = 1});
                     static_cast<void>(ask());
                     accepting.request_stop();
                     accepting.join();
                     sim::check(all->statistics().connections == 0);
                     all.reset();
                     listener.close();
                   }});
      },
      {.preemptions = 2});
}

TEST(acceptor, goes_on_where_a_connection_makes_room) {
  for (const bool shortage : {false, true}) {
    expect_passes(
        [shortage] {
          tcp_listener listener = listening();
          int answered = 0;
          run_fibers(1, {[&] {
                       accept_options options;
                       options.max_connections = shortage ? SIZE_MAX : 1;
                       acceptor all(options);
                       fiber accepting = spawn([&] { static_cast<void>(all.run(listener, answer)); });
                       fiber other = spawn([&] { answered += ask() ? 1 : 0; });
                       answered += ask() ? 1 : 0;
                       other.join();
                       accepting.request_stop();
                       accepting.join();
                       sim::check(answered == 2, "each is accepted");
                       sim::check(all.statistics().shortages <= 1 && all.statistics().accepted == 2);
                     }});
        },
        {.preemptions = 2, .faults = {.shortage = shortage}});
  }
}

}  // namespace
