// UDP and Unix sockets on the network of an exploration: stops, deadlines, closes, losses and passed descriptors.
#include <gtest/gtest.h>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/net/acceptor.hpp>
#include <pirn/net/udp_socket.hpp>
#include <pirn/net/unix_datagram_socket.hpp>
#include <pirn/net/unix_listener.hpp>
#include <pirn/sim/network.hpp>

#include <string>

#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::expect_passes;
using pirn_test::run_fibers;
using sim::outcome;

namespace {

const endpoint here{ip_address::loopback_v4(), 53};

udp_socket bound(const endpoint& at = here) { return udp_socket::bind(at).value(); }
unix_address name() { return unix_address::parse("@here").value(); }

sim::options bound_by(unsigned preemptions) { return {.preemptions = preemptions}; }

TEST(udp, two_receivers_and_a_stop_lose_nothing) {
  expect_passes(
      [] {
        udp_socket server = bound();
        int got = 0;
        fiber other;
        run_fibers(2, {[&] {
                     other = spawn(
                         [&] {
                           char byte;
                           const auto one = server.receive(&byte, 1);
                           sim::check(one || one.error() == io_error::stopped);
                           got += one ? 1 : 0;
                         },
                         {.worker = 1});
                     fiber sender = spawn(
                         [&] {
                           udp_socket client = udp_socket::connect(here).value();
                           client.send("a").value();
                           other.request_stop();
                           client.send("b").value();
                         },
                         {.worker = 1});
                     char byte;
                     sim::check(server.receive(&byte, 1).has_value());  // whatever the other one does
                     sender.join();
                     other.join();
                     while (server.receive(&byte, 1, 1ms)) {
                       ++got;
                     }
                     sim::check(got == 1, "each datagram is received once");
                   }});
      },
      bound_by(2));
}

TEST(udp, a_close_ends_a_receive_beside_a_send) {
  expect_passes(
      [] {
        udp_socket server = bound();
        run_fibers(2, {[&] {
                         char byte;
                         const auto got = server.receive(&byte, 1);
                         sim::check(got || got.error() == io_error::closed);
                       },
                       [&] {
                         udp_socket::bind({here.address, 0}).value().send_to(here, "x").value();
                         server.close();
                       }});
      },
      bound_by(1));
}

TEST(udp, an_address_without_a_port_is_refused) {
  expect_passes([] {
    udp_socket socket = bound();
    sim::check(socket.send_to({here.address, 0}, "x").error() == std::errc::invalid_argument);
  });
}

TEST(udp, an_ipv4_socket_refuses_an_ipv6_address) {
  expect_passes([] {
    udp_socket socket = bound();
    sim::check(socket.send_to({ip_address::loopback_v6(), 53}, "x").error() == std::errc::address_family_not_supported);
    sim::check(udp_socket::bind({ip_address::any_v6(), 54})->send_to(here, "x").has_value());  // the other way it works
  });
}

TEST(udp, a_socket_takes_what_is_sent_to_its_address) {
  expect_passes(
      [] {
        const endpoint other{ip_address::v4({192, 0, 2, 1}), here.port};
        run_fibers(1, {[&] {
                     char byte;
                     udp_socket server = bound();
                     udp_socket client = udp_socket::connect(other).value();
                     client.send("x").value();
                     sim::check(client.receive(&byte, 1).error() == std::errc::connection_refused);
                     server.close();
                     server = bound({ip_address::any_v4(), here.port});
                     client.send("x").value();
                     sim::check(server.receive(&byte, 1).has_value());
                   }});
      },
      bound_by(0));
}

TEST(udp, a_refusal_wakes_the_receiver) {
  for (const auto delay : {0ms, 3ms}) {
    expect_passes(
        [delay] {
          const sim::latency each_way(delay);
          run_fibers(1, {[] {
                       udp_socket client = udp_socket::connect(here).value();
                       fiber sender = spawn([&] { client.send("x").value(); });
                       char byte;
                       sim::check(client.receive(&byte, 1).error() == std::errc::connection_refused);
                       sender.join();
                     }});
        },
        bound_by(2));
  }
}

/// Asks again after a time without an answer, at most three times.
bool ask_again() {
  udp_socket client = udp_socket::connect(here).value();
  for (int i = 0; i < 3; ++i) {
    char byte;
    if (client.send("x") && client.receive(&byte, 1, 10ms)) {
      return true;
    }
  }
  return false;
}

TEST(udp, a_client_survives_a_loss_and_a_partition) {
  const auto program = [] {
    udp_socket server = bound();
    run_fibers(1, {[&] {
                     char byte;
                     while (const auto got = server.receive(&byte, 1)) {
                       static_cast<void>(server.send_to(got->from, "y"));
                     }
                   },
                   [&] {
                     sim::check(ask_again());
                     server.close();
                   }});
  };
  expect_passes(program, {.preemptions = 1, .faults = {.loss = true, .max_per_execution = 2}});
  EXPECT_EQ(sim::explore(program, {.preemptions = 1, .faults = {.loss = true, .max_per_execution = 3}}).what,
            outcome::assertion);
  expect_passes([program] {
    const sim::latency each_way(2ms);
    program();
  });
  EXPECT_EQ(sim::explore([program] {
              const sim::partition apart(here.port);
              program();
            }).what,
            outcome::assertion);
}

/// Whether a server that adds up numbers gets 1, 2 and 3 from a client in this order, and each once.
template <bool Numbered>
void add_up() {
  udp_socket server = bound();
  int sum = 0;
  run_fibers(1, {[&] {
                   udp_socket client = udp_socket::connect(here).value();
                   for (const char byte : {'\1', '\2', '\3'}) {
                     client.send(&byte, 1).value();
                   }
                 },
                 [&] {
                   unsigned char byte;
                   for (int last = 0; server.receive(&byte, 1, 1s);) {
                     if (!Numbered || byte > last) {  // a repeated or late number is left out
                       sim::check(byte > last, "numbers come in order");
                       sum += byte;
                       last = byte;
                     }
                   }
                   sim::check(Numbered || sum == 6, "each comes once");
                 }});
}

TEST(udp, datagrams_are_repeated_and_overtaken) {
  for (const auto fault : {&sim::faults::duplicate, &sim::faults::reorder}) {
    sim::options options = bound_by(1);
    expect_passes(add_up<false>, options);
    options.faults.*fault = true;
    const auto found = sim::explore(add_up<false>, options);
    EXPECT_EQ(found.what, outcome::assertion);
    EXPECT_NE(found.trace.find(fault == &sim::faults::reorder ? "arrives behind later ones" : "arrives twice"),
              std::string::npos)
        << found.text();
    expect_passes(add_up<true>, options);
  }
}

TEST(udp, a_late_answer_meets_the_next_question) {
  const auto found = sim::explore(
      [] {
        const sim::latency each_way(3ms);
        udp_socket server = bound();
        run_fibers(1, {[&] {
                         char byte;
                         while (const auto got = server.receive(&byte, 1)) {
                           static_cast<void>(server.send_to(got->from, &byte, 1));
                         }
                       },
                       [&] {
                         udp_socket client = udp_socket::connect(here).value();
                         for (const char byte : {'a', 'b'}) {
                           char answer;
                           client.send(&byte, 1).value();
                           const bool answered = client.receive(&answer, 1, 10ms).has_value();
                           sim::check(!answered || answer == byte, "an answer to another question");
                           static_cast<void>(this_fiber::sleep_for(90ms));
                         }
                         server.close();
                       }});
      },
      {.preemptions = 0, .faults = {.reorder = true}});
  EXPECT_NE(found.message.find("an answer to another question"), std::string::npos) << found.text();
}

/// Passes one end of a pair, and keeps the other, which reads its end once no copy is open.
class token {
 public:
  token() {
    auto ends = unix_stream::pair().value();
    passed_ = std::move(ends.first);
    kept_ = std::move(ends.second);
  }
  [[nodiscard]] int native() const { return passed_.native(); }
  void expect_closed() {
    passed_.close();
    char byte;
    sim::check(kept_.read(&byte, 1).value() == 0, "no copy is open");
  }

 private:
  unix_stream passed_, kept_;
};

TEST(unix_sockets, a_passed_descriptor_and_a_deadline_leak_nothing) {
  for (const bool shortage : {false, true}) {
    expect_passes(
        [shortage] {
          token one;
          auto [sender, receiver] = unix_stream::pair().value();
          run_fibers(2, {[&, &from = receiver] {
                           descriptor into;
                           char byte;
                           const auto got = from.receive_descriptors({&into, 1}, &byte, 1, 5ms);
                           sim::check(got || got.error() == io_error::timed_out);
                           sim::check(!got || into.is_open() || shortage);
                           from.close();
                         },
                         [&, &to = sender] {
                           static_cast<void>(this_fiber::sleep_for(5ms));
                           const int natives[] = {one.native()};
                           const auto sent = to.send_descriptors(natives, "x", 1);
                           sim::check(sent || sent.error() == std::errc::broken_pipe);
                         }});
          one.expect_closed();
        },
        {.preemptions = shortage ? 1u : 2u, .faults = {.shortage = shortage}});
  }
}

TEST(unix_sockets, a_passed_descriptor_and_a_stop_leak_nothing) {
  expect_passes(
      [] {
        token one;
        auto ends = unix_datagram_socket::pair().value();
        run_fibers(2, {[&] {
                     fiber receiver = spawn(
                         [&] {
                           descriptor into;
                           char byte;
                           const auto got = ends.second.receive_descriptors({&into, 1}, &byte, 1);
                           sim::check(got ? into.is_open() : got.error() == io_error::stopped);
                         },
                         {.worker = 1});
                     const int natives[] = {one.native()};
                     ends.first.send_descriptors(natives, "x", 1).value();
                     receiver.request_stop();
                     receiver.join();
                     ends.second.close();
                   }});
        one.expect_closed();
      },
      bound_by(2));
}

TEST(unix_sockets, a_sender_with_a_peer_is_woken_when_there_is_room) {
  expect_passes(
      [] {
        auto receiver = unix_datagram_socket::bind(name()).value();
        auto sender = unix_datagram_socket::connect(name()).value();
        run_fibers(2, {[&] {
                         const sim::one_schedule apart;
                         for (int i = 0; i < 11; ++i) {
                           sender.send("x").value();
                         }
                       },
                       [&] {
                         char byte;
                         for (int i = 0; i < 12; ++i) {
                           receiver.receive(&byte, 1).value();
                         }
                       },
                       [&] { sender.send("y").value(); }});
      },
      bound_by(1));
}

TEST(unix_sockets, a_sender_without_a_peer_looks_again) {
  expect_passes(
      [] {
        auto receiver = unix_datagram_socket::bind(name()).value();
        auto sender = unix_datagram_socket::bind({}).value();
        for (int i = 0; i < 11; ++i) {
          sender.send_to(name(), "x").value();
        }
        run_fibers(2, {[&] { sender.send_to(name(), "y").value(); },
                       [&] {
                         char byte;
                         static_cast<void>(this_fiber::sleep_for(3ms));
                         for (int i = 0; i < 12; ++i) {
                           receiver.receive(&byte, 1).value();
                         }
                       }});
      },
      bound_by(1));
}

TEST(unix_sockets, a_connect_waits_for_a_place_in_the_queue) {
  expect_passes(
      [] {
        auto listener = unix_listener::listen(name(), {.backlog = 0}).value();
        run_fibers(2, {[&] {
                         for (int i = 0; i < 2; ++i) {
                           char byte;
                           sim::check(listener.accept().value().read(&byte, 1).value() == 0);
                         }
                       },
                       [] { unix_stream::connect(name()).value(); }, [] { unix_stream::connect(name()).value(); }});
      },
      bound_by(1));
}

TEST(unix_sockets, an_acceptor_and_a_stop) {
  expect_passes(
      [] {
        auto listener = unix_listener::listen(name()).value();
        run_fibers(2, {[&] {
                     acceptor all;
                     fiber accepting = spawn(
                         [&] {
                           static_cast<void>(all.run(listener, [](unix_stream stream) {
                             char byte;
                             if (stream.read(&byte, 1)) {
                               static_cast<void>(stream.write(&byte, 1));
                             }
                           }));
                         },
                         {.worker = 1});
                     if (auto client = unix_stream::connect(name()); client && client->write("x")) {
                       char byte;
                       static_cast<void>(client->read(&byte, 1));
                     }
                     accepting.request_stop();
                     accepting.join();
                     listener.close();
                     sim::check(unix_stream::connect(name()).error() == std::errc::connection_refused);
                   }});
      },
      bound_by(1));
}

TEST(unix_sockets, one_that_is_left_open_is_a_leak) {
  const auto found = sim::explore([] {
    static_cast<void>(unix_datagram_socket::bind(unix_address::parse("/run/x").value()).value().native());
    auto open = unix_datagram_socket::bind(name()).value();
    new unix_datagram_socket(std::move(open));
  });
  EXPECT_EQ(found.what, outcome::leak);
  EXPECT_NE(found.text().find("a socket for datagrams at @here"), std::string::npos) << found.text();
}

}  // namespace
