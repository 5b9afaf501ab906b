// tcp_listener: ports, deadlines, stops, and descriptors that run out.

#include "pirn/net/tcp_listener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>
#include <vector>

#include "net/support.hpp"

namespace {

using namespace test;
using pirn::io_error;
using pirn::ip_address;
using pirn::tcp_listener;
using pirn::tcp_stream;

TEST(tcp_listener, tells_its_port_and_accepts) {
  both_ways([] {
    auto listener = tcp_listener::listen(loopback());
    ASSERT_TRUE(listener);
    const auto at = listener->local_endpoint();
    ASSERT_TRUE(at);
    EXPECT_NE(at->port, 0);
    auto client = tcp_stream::connect(*at);
    ASSERT_TRUE(client) << client.error().message();
    auto server = listener->accept();
    ASSERT_TRUE(server);
    EXPECT_EQ(server->remote_endpoint(), client->local_endpoint());
    EXPECT_EQ(client->remote_endpoint(), *at);
  });
}

TEST(tcp_listener, takes_ipv6_and_ipv4_on_one_socket) {
  both_ways([] {
    auto listener = tcp_listener::listen({ip_address::any_v6(), 0});
    ASSERT_TRUE(listener) << listener.error().message();
    const auto port = listener->local_endpoint()->port;
    for (const auto& address : {ip_address::loopback_v6(), ip_address::loopback_v4()}) {
      auto client = tcp_stream::connect({address, port}, in(long_enough));
      ASSERT_TRUE(client) << client.error().message();
      ASSERT_TRUE(listener->accept(in(long_enough)));
    }
    auto only_v6 = tcp_listener::listen({ip_address::any_v6(), 0}, {.dual_stack = false});
    ASSERT_TRUE(only_v6);
    const auto refused = tcp_stream::connect({ip_address::loopback_v4(), only_v6->local_endpoint()->port});
    EXPECT_EQ(refused.error(), std::errc::connection_refused);
  });
}

TEST(tcp_listener, deadline_stop_and_close_end_an_accept) {
  both_ways([] {
    auto listener = tcp_listener::listen(loopback());
    ASSERT_TRUE(listener);
    EXPECT_EQ(listener->accept(in(5ms)).error(), io_error::timed_out);
    EXPECT_EQ(listener->accept(in(-1ms)).error(), io_error::timed_out);
  });
  pirn::runtime({.workers = 1}).run([] {
    auto listener = tcp_listener::listen(loopback());
    stop_while_blocked([&] { EXPECT_EQ(listener->accept().error(), io_error::stopped); });
    pirn::fiber waiting = pirn::spawn([&] { EXPECT_EQ(listener->accept().error(), io_error::closed); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    listener->close();
    waiting.join();
    EXPECT_EQ(listener->accept().error(), io_error::closed);
    EXPECT_EQ(listener->local_endpoint().error(), io_error::closed);
  });
}

TEST(tcp_listener, a_port_in_use_is_an_error_value) {
  auto first = tcp_listener::listen(loopback());
  ASSERT_TRUE(first);
  EXPECT_EQ(tcp_listener::listen(*first->local_endpoint()).error(), std::errc::address_in_use);
  EXPECT_EQ(tcp_listener::listen({*ip_address::parse("192.0.2.1"), 0}).error(), std::errc::address_not_available);
  auto shared = tcp_listener::listen(loopback(), {.reuse_port = true});
  ASSERT_TRUE(shared);
  EXPECT_TRUE(tcp_listener::listen(*shared->local_endpoint(), {.reuse_port = true}));
}

TEST(tcp_listener, several_fibers_accept) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    constexpr int clients = 40;
    auto listener = tcp_listener::listen(loopback());
    const auto at = *listener->local_endpoint();
    std::atomic<int> accepted{0};
    std::vector<pirn::fiber> acceptors;
    for (int i = 0; i < 4; ++i) {
      acceptors.push_back(pirn::spawn(
          [&] {
            while (listener->accept()) {
              ++accepted;
            }
          },
          {.worker = i % 2}));
    }
    std::vector<tcp_stream> open;
    for (int i = 0; i < clients; ++i) {
      open.push_back(tcp_stream::connect(at, in(long_enough)).value());
    }
    const auto limit = in(long_enough);
    while (accepted < clients && std::chrono::steady_clock::now() < limit) {
      ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));
    }
    EXPECT_EQ(accepted, clients);
  });
}

TEST(tcp_listener, running_out_of_descriptors_is_reported_and_passes) {
  both_ways([] {
    auto listener = tcp_listener::listen(loopback());
    const auto at = *listener->local_endpoint();
    auto client = tcp_stream::connect(at, in(long_enough));
    ASSERT_TRUE(client);
    pirn::descriptor probe(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(probe.native());  // all lower numbers are in use
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    std::vector<pirn::descriptor> gaps;
    for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
      gaps.emplace_back(fd);
    }
    const auto none = listener->accept(in(long_enough));
    const auto no_connect = tcp_stream::connect(at);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(none.error(), std::errc::too_many_files_open);
    EXPECT_EQ(no_connect.error(), std::errc::too_many_files_open);
    EXPECT_TRUE(listener->accept(in(long_enough)));
  });
}

}  // namespace
