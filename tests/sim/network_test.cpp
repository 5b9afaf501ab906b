// pirn::net on the network of an exploration.
#include "pirn/sim/network.hpp"

#include <gtest/gtest.h>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/net/tcp_listener.hpp>
#include <pirn/net/tcp_stream.hpp>

#include <optional>
#include <set>
#include <string>

#include "detail/system.hpp"
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

/// Sends back all data until the stream ends.
void echo(tcp_stream stream) {
  char buffer[64];
  for (;;) {
    const auto got = stream.read(buffer, sizeof buffer);
    if (!got || *got == 0 || !stream.write({buffer, *got})) {
      return;
    }
  }
}

/// Returns whether the sent text has come back.
bool ask(std::string_view text, platform::time_point deadline = platform::never) {
  auto stream = tcp_stream::connect(here, deadline);
  std::string answer(text.size(), ' ');
  return stream && stream->write(text, deadline) && stream->read_exactly(answer.data(), answer.size(), deadline) &&
         answer == text;
}

sim::options bound(unsigned preemptions) { return {.preemptions = preemptions}; }

sim::options with(sim::faults what, unsigned preemptions = 0) { return {.preemptions = preemptions, .faults = what}; }

TEST(network, an_echo_from_another_worker) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] { echo(*listener.accept()); }, [] { sim::check(ask("hello")); }});
      },
      bound(2));
}

TEST(network, an_echo_on_the_same_worker) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(1, {[&] { echo(*listener.accept()); }, [] { sim::check(ask("hello")); }});
      },
      bound(2));
}

TEST(network, two_clients_of_one_listener) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        const auto serve = [&] {
          for (int i = 0; i < 2; ++i) {
            echo(*listener.accept());
          }
        };
        run_fibers(2, {serve, [] { sim::check(ask("one")); }, [] { sim::check(ask("other")); }});
      },
      bound(1));
}

TEST(network, two_accept_at_one_listener) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        const auto serve = [&] { sim::check(listener.accept().has_value()); };
        run_fibers(3, {serve, serve, [] {
                         for (int i = 0; i < 2; ++i) {
                           sim::check(tcp_stream::connect(here).has_value());
                         }
                       }});
      },
      bound(1));
}

TEST(network, plain_threads) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        const sim::thread server([&] { echo(*listener.accept()); });
        sim::check(ask("hello"));
      },
      bound(1));
}

TEST(network, what_was_done_before_a_write_is_seen_after_the_read) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        sim::var<int> shared = 0;
        run_fibers(2, {[&] {
                         auto stream = listener.accept().value();
                         char byte;
                         static_cast<void>(stream.read(&byte, 1));
                         sim::check(shared.get() == 7);
                       },
                       [&] {
                         auto stream = tcp_stream::connect(here).value();
                         shared = 7;
                         stream.write("x").value();
                       }});
      },
      bound(1));
}

TEST(network, a_writer_waits_for_room) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        const std::string all(9000, 'x');
        run_fibers(2, {[&] {
                         auto stream = listener.accept().value();
                         std::string got(all.size(), ' ');
                         sim::check(stream.read_exactly(got.data(), got.size()).has_value() && got == all);
                         sim::check(stream.read(got.data(), 1).value() == 0, "the end of the stream");
                       },
                       [&] { sim::check(tcp_stream::connect(here).value().write(all).has_value()); }});
      },
      bound(1));
}

TEST(network, a_read_leaves_what_does_not_fit) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] {
                         auto stream = listener.accept().value();
                         char part[2];
                         for (std::size_t left = 5; left != 0;) {
                           left -= stream.read(part, sizeof part).value();
                         }
                         stream.write("x").value();
                       },
                       [] {
                         auto stream = tcp_stream::connect(here).value();
                         stream.write("hello").value();
                         char answer;
                         sim::check(stream.read(&answer, 1).value() == 1);
                       }});
      },
      bound(1));
}

TEST(network, endpoints_are_those_of_the_connection) {
  expect_passes([] {
    auto listener = tcp_listener::listen({ip_address::loopback_v6(), 0}).value();
    const endpoint at = listener.local_endpoint().value();
    sim::check(at.port != 0);
    run_fibers(1, {[&] {
                 auto client = tcp_stream::connect(at).value();
                 auto server = listener.accept().value();
                 sim::check(client.remote_endpoint().value() == at && server.local_endpoint().value() == at);
                 sim::check(client.local_endpoint().value() == server.remote_endpoint().value());
                 sim::check(tcp_listener::listen(at).error() == std::errc::address_in_use);
               }});
  });
}

// ---- what goes wrong ----------------------------------------------------------------------------------------------

TEST(network, a_port_that_is_taken_is_not_given_out) {
  expect_passes(
      [] {
        tcp_listener first = std::move(tcp_listener::listen({ip_address::loopback_v4(), 49152}).value());
        tcp_listener second = std::move(tcp_listener::listen({ip_address::loopback_v4(), 0}).value());
        sim::check(second.local_endpoint().value().port == 49153);
      },
      bound(0));
}

TEST(network, short_transfers_are_continued) {
  const auto program = [](bool whole) {
    return [whole] {
      tcp_listener listener = listening();
      run_fibers(2, {[&, whole] {
                       auto stream = listener.accept().value();
                       char got[6] = "";
                       sim::check(
                           (whole ? stream.read_exactly(got, 5).has_value() : stream.read(got, 5).value() == 5) &&
                               std::string_view(got) == "hello",
                           "part of a message is taken for all of it");
                     },
                     [] { tcp_stream::connect(here).value().write("hello").value(); }});
    };
  };
  expect_passes(program(true), with({.short_transfers = true, .max_per_execution = 3}, 1));
  EXPECT_TRUE(sim::explore(program(false), bound(1)));
  EXPECT_EQ(sim::explore(program(false), with({.short_transfers = true})).what, outcome::assertion);
}

TEST(network, a_reset_is_an_error_at_both_ends_and_no_hang) {
  int failed = 0;
  int succeeded = 0;
  expect_passes(
      [&] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] { echo(*listener.accept()); }, [&] { ++(ask("hello") ? succeeded : failed); }});
      },
      with({.reset = true}, 1));
  EXPECT_GT(failed, 0);
  EXPECT_GT(succeeded, 0);
}

TEST(network, a_close_with_unread_data_resets) {
  expect_passes([] {
    tcp_listener listener = listening();
    run_fibers(1, {[&] {
                 auto client = tcp_stream::connect(here).value();
                 auto server = listener.accept().value();
                 client.write("unread").value();
                 server.close();
                 char byte;
                 sim::check(client.read(&byte, 1).error() == std::errc::connection_reset);
                 sim::check(client.read(&byte, 1).value() == 0);
                 sim::check(!client.write("x") && client.write("x").error() == std::errc::broken_pipe);
               }});
  });
}

TEST(network, a_write_to_a_closed_peer_fails_after_the_first) {
  expect_passes([] {
    tcp_listener listener = listening();
    run_fibers(1, {[&] {
                 auto client = tcp_stream::connect(here).value();
                 listener.accept().value().close();
                 client.write("x").value();
                 sim::check(client.write("x").error() == std::errc::broken_pipe);
               }});
  });
}

TEST(network, nobody_listens) {
  expect_passes([] {
    run_fibers(1, {[] {
                 sim::check(tcp_stream::connect(here).error() == std::errc::connection_refused);
                 const sim::latency slow(1ms);
                 sim::check(tcp_stream::connect(here).error() == std::errc::connection_refused);
                 sim::check(sim::elapsed() >= 2ms, "the answer travels too");
               }});
  });
}

TEST(network, a_listener_takes_connections_to_its_address) {
  expect_passes([] {
    run_fibers(1, {[] {
                 const endpoint all_v4{ip_address::any_v4(), 80}, other{ip_address::v4({192, 0, 2, 1}), 80};
                 const endpoint other_v6{ip_address::loopback_v6(), 80};
                 {
                   auto listener = tcp_listener::listen(here).value();
                   sim::check(tcp_stream::connect(other).error() == std::errc::connection_refused);
                   sim::check(tcp_stream::connect(all_v4).has_value());  // as Linux takes it
                 }
                 {
                   auto listener = tcp_listener::listen(all_v4).value();
                   sim::check(tcp_stream::connect(other).has_value());
                   sim::check(tcp_stream::connect(other_v6).error() == std::errc::connection_refused);
                 }
                 auto listener = tcp_listener::listen({ip_address::any_v6(), 80}).value();
                 sim::check(tcp_stream::connect(other).has_value() && tcp_stream::connect(other_v6).has_value());
               }});
  });
}

TEST(network, an_accept_is_stopped) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] {
                     fiber waits =
                         spawn([&] { sim::check(listener.accept().error() == io_error::stopped); }, {.worker = 1});
                     waits.request_stop();
                     waits.join();
                   }});
        sim::check(listener.is_open());
      },
      bound(2));
}

TEST(network, a_close_ends_what_others_wait_for) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] { sim::check(listener.accept().error() == io_error::closed); }, [&] { listener.close(); }});
      },
      bound(2));
}

TEST(network, a_socket_that_stays_open_is_a_leak) {
  const sim::result found = sim::explore([] { static_cast<void>(new tcp_listener(listening())); });
  EXPECT_EQ(found.what, outcome::leak) << found.text();
  EXPECT_NE(found.message.find("a listener at port 80"), std::string::npos) << found.text();
}

// ---- what may be left out -----------------------------------------------------------------------------------------

/// Returns all outcomes of two clients, each of which leaves at once, and a server that waits for nothing.
std::set<std::string> outcomes(bool reduce) {
  std::set<std::string> all;
  const sim::result found = sim::explore(
      [&] {
        std::string saw[3];
        {
          tcp_listener listener = listening();
          const auto send = [](char what, std::string& told) {
            return [what, &told] {
              auto stream = tcp_stream::connect(here);
              told = !stream ? "refused" : stream->write({&what, 1}) ? "sent" : "failed";
            };
          };
          const sim::thread one(send('1', saw[1]));
          const sim::thread other(send('2', saw[2]));
          for (int i = 0; i < 3; ++i) {
            const descriptor stream(platform::system::accept4(listener.native(), nullptr, nullptr, 0));
            char what = '?';
            const auto got = platform::system::recv(stream.native(), &what, 1, 0);
            saw[0] += !stream.is_open() ? '-' : got < 0 ? 'n' : got == 0 ? 'e' : what;
          }
          listener.close();
        }
        all.insert(saw[0] + " " + saw[1] + " " + saw[2]);
      },
      {.preemptions = 2, .reduce = reduce, .budget = std::chrono::minutes(1)});
  EXPECT_TRUE(found && found.complete) << found.text();
  std::printf("  %llu executions, %zu outcomes\n", static_cast<unsigned long long>(found.executions), all.size());
  return all;
}

TEST(network, leaving_executions_out_leaves_no_outcome_out) { EXPECT_EQ(outcomes(true), outcomes(false)); }

// ---- time ---------------------------------------------------------------------------------------------------------

TEST(network, latency_is_virtual_time) {
  expect_passes(
      [] {
        const sim::latency slow(1h);
        tcp_listener listener = listening();
        run_fibers(2, {[&] { echo(*listener.accept()); }, [] { sim::check(ask("hello")); }});
        // The connection there and back, the question, its answer, and the end of the stream.
        sim::check(sim::elapsed() >= 4h && sim::elapsed() <= 5h);
      },
      bound(1));
}

TEST(network, a_deadline_passes_while_a_partition_lasts) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(2, {[&] { echo(*listener.accept()); },
                       [] {
                         auto stream = tcp_stream::connect(here).value();
                         char buffer[5];
                         {
                           const sim::partition apart(port);
                           stream.write("hello").value();
                           const auto deadline = platform::now() + 1s;
                           sim::check(stream.read(buffer, sizeof buffer, deadline).error() == io_error::timed_out);
                           sim::check(tcp_stream::connect(here, deadline + 1s).error() == io_error::timed_out);
                         }
                         sim::check(stream.read_exactly(buffer, sizeof buffer).has_value(), "nothing gets lost");
                         sim::check(sim::elapsed() >= 2s && sim::elapsed() < 3s);
                       }});
      },
      bound(1));
}

TEST(network, a_connection_waits_for_the_end_of_a_partition) {
  expect_passes(
      [] {
        tcp_listener listener = listening();
        std::optional<sim::partition> apart(port);
        run_fibers(2, {[&] { echo(*listener.accept()); }, [] { sim::check(ask("hello")); },
                       [&] {
                         this_fiber::sleep_for(1s).value();
                         apart.reset();
                       }});
        sim::check(sim::elapsed() >= 1s);
      },
      bound(1));
}

constexpr auto while_it_lasts = 1s;
std::optional<std::error_code> read_error(tcp_stream& stream) {
  char byte;
  const auto got = stream.read(&byte, 1, platform::now() + while_it_lasts);
  return got ? std::nullopt : std::optional<std::error_code>(got.error());
}

TEST(network, a_reset_does_not_pass_a_partition) {
  expect_passes([] {
    tcp_listener listener = listening();
    run_fibers(1, {[&] {
                 auto client = tcp_stream::connect(here).value();
                 client.write("unread").value();
                 auto server = listener.accept().value();
                 {
                   const sim::partition apart(port);
                   server.close();
                   sim::check(read_error(client) == io_error::timed_out);
                   client.write("x").value();
                 }
                 sim::check(read_error(client) == std::errc::connection_reset);
                 sim::check(!client.write("x"));
               }});
  });
}

TEST(network, an_injected_reset_does_not_pass_a_partition) {
  static bool injected;
  injected = false;
  expect_passes(
      [] {
        tcp_listener listener = listening();
        run_fibers(1, {[&] {
                     auto client = tcp_stream::connect(here).value();
                     auto server = listener.accept().value();
                     bool reset = false;
                     {
                       const sim::partition apart(port);
                       reset = !server.write("x");
                       sim::check(!reset || read_error(client) == io_error::timed_out);
                     }
                     injected = injected || reset;
                     sim::check(!reset || read_error(client) == std::errc::connection_reset);
                   }});
      },
      with({.reset = true}));
  EXPECT_TRUE(injected);
}

TEST(network, the_end_of_a_listener_does_not_pass_a_partition) {
  expect_passes([] {
    tcp_listener listener = listening();
    run_fibers(1, {[&] {
                 auto client = tcp_stream::connect(here).value();
                 {
                   const sim::partition apart(port);
                   listener.close();
                   client.write("x").value();
                   sim::check(read_error(client) == io_error::timed_out);
                 }
                 sim::check(read_error(client) == std::errc::connection_reset);
               }});
  });
}

TEST(network, a_reader_of_the_other_side_makes_no_room) {
  expect_passes([] {
    tcp_listener listener = listening();
    run_fibers(1, {[&] {
                 auto client = tcp_stream::connect(here).value();
                 auto server = listener.accept().value();
                 std::string much(4096, 'x');
                 client.write(much).value();
                 {
                   const sim::partition apart(port);
                   server.read_exactly(much.data(), much.size()).value();
                   sim::check(client.write("x", platform::now() + while_it_lasts).error() == io_error::timed_out);
                 }
                 client.write("x", platform::now() + while_it_lasts).value();
                 sim::check(sim::elapsed() < 2 * while_it_lasts);
               }});
  });
}

TEST(network, that_nobody_reads_any_more_is_known_after_a_round_trip) {
  expect_passes([] {
    const sim::latency slow(1ms);
    tcp_listener listener = listening();
    run_fibers(1, {[&] {
                 auto client = tcp_stream::connect(here).value();
                 listener.accept().value().close();
                 this_fiber::sleep_for(5ms).value();
                 const auto before = sim::elapsed();
                 while (client.write("x")) {
                   this_fiber::sleep_for(1ms).value();
                 }
                 const auto took = sim::elapsed() - before;
                 sim::check(took >= 2ms && took < 4ms);
               }});
  });
}

}  // namespace
