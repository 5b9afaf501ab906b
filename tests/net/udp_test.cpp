// udp_socket: single datagrams, batches, truncation, refusals, deadlines, stops and closes.
#include "pirn/net/udp_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <set>
#include <string>
#include <vector>

#include "net/support.hpp"

namespace {

using namespace test;
using pirn::io_error;
using pirn::ip_address;
using pirn::udp_socket;

udp_socket bound(const pirn::endpoint& at = loopback()) { return udp_socket::bind(at).value(); }
pirn::endpoint name_of(const udp_socket& socket) { return socket.local_endpoint().value(); }

/// Returns the text of the next datagram.
std::string next(udp_socket& from) {
  char buffer[2048];
  const auto got = from.receive(buffer, sizeof buffer, in(long_enough));
  return got ? std::string(buffer, got->size) : got.error().message();
}

TEST(udp_socket, carries_datagrams_whole_and_names_the_sender) {
  both_ways([] {
    for (const auto& address : {ip_address::loopback_v4(), ip_address::loopback_v6()}) {
      udp_socket one = bound({address, 0}), other = bound({address, 0});
      ASSERT_TRUE(one.send_to(name_of(other), "first"));
      ASSERT_TRUE(one.send_to(name_of(other), ""));
      ASSERT_TRUE(one.send_to(name_of(other), "third"));
      char buffer[16];
      auto got = other.receive(buffer, sizeof buffer, in(long_enough));
      ASSERT_TRUE(got);
      EXPECT_EQ(std::string_view(buffer, got->size), "first");
      EXPECT_EQ(got->from, name_of(one));
      EXPECT_FALSE(got->truncated);
      got = other.receive(buffer, sizeof buffer, in(long_enough));
      ASSERT_TRUE(got);
      EXPECT_EQ(got->size, 0u);
      EXPECT_EQ(next(other), "third");
      ASSERT_TRUE(other.send_to(got->from, "answer"));
      EXPECT_EQ(next(one), "answer");
    }
  });
}

TEST(udp_socket, a_datagram_that_does_not_fit_is_truncated) {
  udp_socket one = bound(), other = bound();
  char buffer[4];
  for (const std::string_view text : {"abcdef", "abcd"}) {
    ASSERT_TRUE(one.send_to(name_of(other), text));
    const auto got = other.receive(buffer, sizeof buffer, in(long_enough));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->size, 4u);
    EXPECT_EQ(got->truncated, text.size() > 4);
  }
  ASSERT_TRUE(one.send_to(name_of(other), "next"));
  EXPECT_EQ(next(other), "next");
  const std::string much(65'508, 'x');
  EXPECT_EQ(one.send_to(name_of(other), much).error(), std::errc::message_size);
}

TEST(udp_socket, a_peer_is_the_only_sender_and_the_usual_receiver) {
  both_ways([] {
    udp_socket server = bound(), stranger = bound();
    udp_socket client = udp_socket::connect(name_of(server)).value();
    EXPECT_EQ(client.remote_endpoint(), name_of(server));
    EXPECT_EQ(server.remote_endpoint().error(), std::errc::not_connected);
    ASSERT_TRUE(stranger.send_to(name_of(client), "stranger"));
    ASSERT_TRUE(client.send("question"));
    EXPECT_EQ(next(server), "question");
    ASSERT_TRUE(server.send_to(name_of(client), "answer"));
    EXPECT_EQ(next(client), "answer");
    EXPECT_EQ(server.send("to nobody").error(), std::errc::destination_address_required);
    ASSERT_TRUE(server.set_peer(name_of(client)));
    ASSERT_TRUE(server.send("to the peer"));
    EXPECT_EQ(next(client), "to the peer");
  });
}

TEST(udp_socket, a_peer_that_does_not_listen_refuses_once) {
  both_ways([] {
    udp_socket gone = bound();
    udp_socket client = udp_socket::connect(name_of(gone)).value();
    gone.close();
    ASSERT_TRUE(client.send("x"));
    char buffer[4];
    EXPECT_EQ(client.receive(buffer, sizeof buffer, in(long_enough)).error(), std::errc::connection_refused);
    EXPECT_EQ(client.receive(buffer, sizeof buffer, in(5ms)).error(), io_error::timed_out);
    ASSERT_TRUE(client.send("x"));
    EXPECT_EQ(client.send("x").error(), std::errc::connection_refused);
  });
}

TEST(udp_socket, a_waiting_receiver_hears_of_a_refusal) {
  pirn::runtime({.workers = 1}).run([] {
    udp_socket gone = bound();
    udp_socket client = udp_socket::connect(name_of(gone)).value();
    gone.close();
    pirn::fiber receiver = pirn::spawn([&] { EXPECT_EQ(next(client), "Connection refused"); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    ASSERT_TRUE(client.send("x"));
    receiver.join();
  });
}

TEST(udp_socket, batches_need_one_call) {
  both_ways([] {
    udp_socket one = bound(), other = bound();
    const std::string texts[] = {"a", "", "ccc", "dddd", "eeeee"};
    std::vector<udp_socket::datagram> out;
    for (const std::string& text : texts) {
      out.push_back({text.data(), text.size(), name_of(other)});
    }
    EXPECT_EQ(one.send_batch(out), 5u);
    char buffers[6][4];
    std::vector<udp_socket::slot> slots;
    for (char (&buffer)[4] : buffers) {
      slots.push_back({buffer, sizeof buffer});
    }
    EXPECT_EQ(other.receive_batch(slots, in(long_enough)), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(std::string_view(buffers[i], slots[i].what.size), texts[i].substr(0, 4));
      EXPECT_EQ(slots[i].what.truncated, i == 4);
      EXPECT_EQ(slots[i].what.from, name_of(one));
    }
    EXPECT_EQ(other.receive_batch(slots, in(2ms)).error(), io_error::timed_out);
    EXPECT_EQ(other.receive_batch({}), 0u);
    EXPECT_EQ(one.send_batch({}), 0u);
  });
}

TEST(udp_socket, a_batch_is_limited_and_ends_before_what_cannot_be_sent) {
  udp_socket other = bound();
  udp_socket one = udp_socket::connect(name_of(other)).value();
  const std::vector<udp_socket::datagram> many(udp_socket::max_batch + 8, {"x", 1});
  EXPECT_EQ(one.send_batch(many), udp_socket::max_batch);
  char byte;
  std::vector<udp_socket::slot> slots(udp_socket::max_batch + 8, {&byte, 1});
  EXPECT_EQ(other.receive_batch(slots, in(long_enough)), udp_socket::max_batch);
  const std::string much(65'508, 'x');
  const udp_socket::datagram mixed[] = {{"x", 1}, {much.data(), much.size()}, {"y", 1}};
  EXPECT_EQ(one.send_batch(mixed), 1u);
  EXPECT_EQ(one.send_batch(std::span(mixed).subspan(1)).error(), std::errc::message_size);
  const udp_socket::datagram without_port[] = {{"x", 1}, {"y", 1, loopback(0)}};
  EXPECT_EQ(one.send_batch(without_port), 1u);
  EXPECT_EQ(one.send_batch(std::span(without_port).subspan(1)).error(), std::errc::invalid_argument);
}

TEST(udp_socket, two_receivers_share_the_datagrams) {
  pirn::runtime({.workers = 2}).run([] {
    udp_socket one = bound(), other = bound();
    std::string got[2];
    pirn::fiber receivers[2];
    for (int i = 0; i < 2; ++i) {
      receivers[i] = pirn::spawn([&, i] { got[i] = next(other); }, {.worker = i});
    }
    ASSERT_TRUE(one.send_to(name_of(other), "a"));
    ASSERT_TRUE(one.send_to(name_of(other), "b"));
    for (pirn::fiber& each : receivers) {
      each.join();
    }
    EXPECT_EQ((std::set{got[0], got[1]}), (std::set<std::string>{"a", "b"}));
  });
}

TEST(udp_socket, waits_end_by_a_deadline_a_stop_and_a_close) {
  pirn::runtime({.workers = 1}).run([] {
    udp_socket socket = bound();
    char byte;
    EXPECT_EQ(socket.receive(&byte, 1, 2ms).error(), io_error::timed_out);
    EXPECT_EQ(socket.wait_readable(2ms).error(), io_error::timed_out);
    stop_while_blocked([&] { EXPECT_EQ(socket.receive(&byte, 1).error(), io_error::stopped); });
    pirn::fiber receiver = pirn::spawn([&] {
      udp_socket::slot slot{&byte, 1};
      EXPECT_EQ(socket.receive_batch({&slot, 1}).error(), io_error::closed);
    });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    socket.close();
    receiver.join();
    EXPECT_FALSE(socket.is_open());
    EXPECT_EQ(socket.send("x").error(), io_error::closed);
    EXPECT_EQ(socket.receive(&byte, 1).error(), io_error::closed);
  });
}

TEST(udp_socket, options_reach_the_kernel) {
  const auto option = [](const udp_socket& of, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(of.native(), SOL_SOCKET, name, &value, &size), 0);
    return value;
  };
  udp_socket one =
      udp_socket::bind(loopback(), {.reuse_port = true, .receive_buffer = 8192, .send_buffer = 8192}).value();
  EXPECT_EQ(option(one, SO_RCVBUF), 2 * 8192);  // the kernel doubles it for its own needs
  EXPECT_EQ(option(one, SO_SNDBUF), 2 * 8192);
  EXPECT_TRUE(udp_socket::bind(name_of(one), {.reuse_port = true}));
  EXPECT_EQ(udp_socket::bind(name_of(one)).error(), std::errc::address_in_use);
  udp_socket both = bound({ip_address::any_v6(), 0});
  ASSERT_TRUE(one.send_to(loopback(name_of(both).port), "v4"));
  EXPECT_EQ(next(both), "v4");
  udp_socket v6 = udp_socket::bind({ip_address::any_v6(), 0}, {.dual_stack = false}).value();
  EXPECT_TRUE(udp_socket::bind({ip_address::any_v4(), name_of(v6).port}));
}

TEST(udp_socket, adopts_only_udp_sockets) {
  EXPECT_TRUE(udp_socket::adopt(pirn::descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0))));
  for (const auto& [family, type] : {std::pair(AF_INET, SOCK_STREAM), {AF_UNIX, SOCK_DGRAM}}) {
    EXPECT_EQ(udp_socket::adopt(pirn::descriptor(::socket(family, type | SOCK_NONBLOCK, 0))).error(),
              std::errc::wrong_protocol_type);
  }
  EXPECT_EQ(udp_socket::adopt({}).error(), io_error::closed);
}

}  // namespace
