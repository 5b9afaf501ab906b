// Options of TCP connections and listeners, and inherited sockets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "net/support.hpp"
#include "pirn/net/expert/inherited_sockets.hpp"
#include "pirn/net/udp_socket.hpp"
#include "pirn/net/unix_listener.hpp"

namespace {

using namespace test;
using pirn::io_error;
using pirn::ip_address;
using pirn::tcp_listener;
using pirn::tcp_stream;

int option(int native, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(native, level, name, &value, &size), 0);
  return value;
}

TEST(tcp_options, the_source_is_that_of_the_connection) {
  auto listener = tcp_listener::listen(loopback()).value();
  const pirn::endpoint there = listener.local_endpoint().value();
  const ip_address second = ip_address::v4({127, 0, 0, 2});
  auto client = tcp_stream::connect(there, {.source = pirn::endpoint{second, 0}}, in(long_enough)).value();
  auto server = listener.accept().value();
  EXPECT_EQ(server.remote_endpoint()->address, second);
  const pirn::endpoint source = server.remote_endpoint().value();
  EXPECT_EQ(tcp_stream::connect(there, {.source = source}).error(), std::errc::address_in_use);
  client.close_with_reset();
  auto again = tcp_stream::connect(there, {.source = source}, in(long_enough)).value();
  EXPECT_EQ(again.local_endpoint(), source);
  const auto foreign = ip_address::v4({192, 0, 2, 1});
  EXPECT_EQ(tcp_stream::connect(there, {.source = pirn::endpoint{foreign, 0}}).error(),
            std::errc::address_not_available);
}

TEST(tcp_options, small_writes_are_delayed_by_request_only) {
  const auto leaves_at_once = [](const tcp_stream& stream) {
    return option(stream.native(), IPPROTO_TCP, TCP_NODELAY) == 1;
  };
  const connected usual = connect_pair();
  EXPECT_TRUE(leaves_at_once(usual.client) && leaves_at_once(usual.server));
  auto listener = tcp_listener::listen(loopback(), {.delay = tcp_stream::delay::allowed}).value();
  auto client = tcp_stream::connect(listener.local_endpoint().value(), {.delay = tcp_stream::delay::allowed}).value();
  EXPECT_FALSE(leaves_at_once(client) || leaves_at_once(listener.accept().value()));
  EXPECT_TRUE(client.set_delay(tcp_stream::delay::none));
  EXPECT_TRUE(leaves_at_once(client));
}

TEST(tcp_options, buffers_are_of_the_given_size) {
  auto listener = tcp_listener::listen(loopback(), {.receive_buffer = 16384, .send_buffer = 16384}).value();
  auto client = tcp_stream::connect(listener.local_endpoint().value(), {.receive_buffer = 8192, .send_buffer = 8192},
                                    in(long_enough))
                    .value();
  auto server = listener.accept().value();
  EXPECT_EQ(option(server.native(), SOL_SOCKET, SO_RCVBUF), 2 * 16384);  // the kernel doubles it for its own needs
  EXPECT_EQ(option(server.native(), SOL_SOCKET, SO_SNDBUF), 2 * 16384);
  EXPECT_EQ(option(client.native(), SOL_SOCKET, SO_RCVBUF), 2 * 8192);
  EXPECT_EQ(option(client.native(), SOL_SOCKET, SO_SNDBUF), 2 * 8192);
  ASSERT_TRUE(client.set_buffers(0, 32768));
  EXPECT_EQ(option(client.native(), SOL_SOCKET, SO_RCVBUF), 2 * 8192);
  EXPECT_EQ(option(client.native(), SOL_SOCKET, SO_SNDBUF), 2 * 32768);
  EXPECT_EQ(tcp_stream().set_buffers(1, 0).error(), io_error::closed);
}

TEST(tcp_options, keep_alive_has_times) {
  connected c = connect_pair();
  ASSERT_TRUE(c.client.set_keep_alive(tcp_stream::keep_alive{.idle = 1500ms, .interval = 3s, .probes = 4}));
  const int native = c.client.native();
  EXPECT_EQ(option(native, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(native, IPPROTO_TCP, TCP_KEEPIDLE), 2);
  EXPECT_EQ(option(native, IPPROTO_TCP, TCP_KEEPINTVL), 3);
  EXPECT_EQ(option(native, IPPROTO_TCP, TCP_KEEPCNT), 4);
  ASSERT_TRUE(c.client.set_keep_alive(std::nullopt));
  EXPECT_EQ(option(native, SOL_SOCKET, SO_KEEPALIVE), 0);
  using how = tcp_stream::keep_alive;
  for (const how& wrong : {how{.idle = 0s}, how{.idle = std::chrono::hours(10)}, how{.interval = -1s},
                           how{.idle = std::chrono::hours(1'000'000)}, how{.probes = 128}}) {
    EXPECT_EQ(c.client.set_keep_alive(wrong).error(), std::errc::invalid_argument);
  }
  EXPECT_EQ(option(native, SOL_SOCKET, SO_KEEPALIVE), 0);
}

TEST(tcp_options, lingers_until_the_peer_has_everything) {
  both_ways([] {
    connected c = connect_pair();
    ASSERT_TRUE(c.client.write("last"));
    ASSERT_TRUE(c.client.linger(in(long_enough)));
    char text[8];
    EXPECT_EQ(c.server.read(text, sizeof text), 4u);
    EXPECT_EQ(c.server.read(text, sizeof text), 0u);
    EXPECT_EQ(tcp_stream().linger().error(), io_error::closed);
  });
}

TEST(tcp_options, lingers_no_longer_than_its_deadline_a_stop_or_a_reset) {
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    const std::string much(1 << 20, 'x');
    while (c.client.write_some(much.data(), much.size(), 2ms)) {
    }
    EXPECT_EQ(c.client.linger(2ms).error(), io_error::timed_out);
    stop_while_blocked([&] { EXPECT_EQ(c.client.linger().error(), io_error::stopped); });
    pirn::fiber lingering = pirn::spawn([&] { EXPECT_EQ(c.client.linger().error(), std::errc::connection_reset); });
    pirn::fiber reading = pirn::spawn([&] {
      char byte;
      EXPECT_EQ(c.client.read(&byte, 1).error(), std::errc::connection_reset);
    });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    c.server.close_with_reset();
    reading.join();
    lingering.join();
    EXPECT_EQ(c.client.unacknowledged().error(), std::errc::connection_reset);
  });
}

TEST(tcp_options, a_listener_shares_its_port_if_both_want_it) {
  auto first = tcp_listener::listen(loopback(), {.reuse_port = true}).value();
  const pirn::endpoint there = first.local_endpoint().value();
  EXPECT_TRUE(tcp_listener::listen(there, {.reuse_port = true}));
  EXPECT_EQ(tcp_listener::listen(there).error(), std::errc::address_in_use);
}

TEST(tcp_options, a_listener_adopts_only_listening_tcp_sockets) {
  auto first = tcp_listener::listen(loopback()).value();
  auto again = tcp_listener::adopt(pirn::descriptor(::dup(first.native())));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->local_endpoint(), first.local_endpoint());
  for (const auto& [family, type] : {std::pair(AF_INET, SOCK_STREAM), {AF_INET, SOCK_DGRAM}, {AF_UNIX, SOCK_STREAM}}) {
    EXPECT_EQ(tcp_listener::adopt(pirn::descriptor(::socket(family, type | SOCK_NONBLOCK, 0))).error(),
              std::errc::wrong_protocol_type);
  }
  EXPECT_EQ(tcp_listener::adopt(pirn::descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC))).error(),
            std::errc::not_a_socket);
}

void set(const char* name, const std::string& value) { ASSERT_EQ(::setenv(name, value.c_str(), 1), 0); }
bool variables_are_left() {
  return ::getenv("LISTEN_PID") != nullptr || ::getenv("LISTEN_FDS") != nullptr ||
         ::getenv("LISTEN_FDNAMES") != nullptr;
}

/// In a child process, which the numbers from 3 belong to, with what a service manager would set.
template <class Body>
void as_a_service(Body body) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    set("LISTEN_PID", std::to_string(::getpid()));
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(inherited_sockets, are_taken_with_their_names) {
  as_a_service([] {
    const int tcp = ::socket(AF_INET, SOCK_STREAM, 0), udp = ::socket(AF_INET, SOCK_DGRAM, 0);
    const int local = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::listen(tcp, 1), 0);
    ::sockaddr unnamed{AF_UNIX, {}};
    ASSERT_EQ(::bind(local, &unnamed, sizeof unnamed.sa_family), 0);
    ASSERT_EQ(::listen(local, 1), 0);
    const int numbers[] = {::fcntl(tcp, F_DUPFD, 100), ::fcntl(local, F_DUPFD, 100), ::fcntl(udp, F_DUPFD, 100)};
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(::dup2(numbers[i], 3 + i), 3 + i);
    }
    set("LISTEN_FDS", "3");
    set("LISTEN_FDNAMES", "web:control:dns");
    auto taken = pirn::take_inherited_sockets().value();
    EXPECT_FALSE(variables_are_left());
    ASSERT_EQ(taken.size(), 3u);
    EXPECT_EQ(taken[0].name + taken[1].name + taken[2].name, "webcontroldns");
    for (int i = 0; i < 3; ++i) {
      EXPECT_NE(::fcntl(3 + i, F_GETFD) & FD_CLOEXEC, 0);
      EXPECT_NE(::fcntl(3 + i, F_GETFL) & O_NONBLOCK, 0);
    }
    auto listener = tcp_listener::adopt(std::move(taken[0].socket));
    ASSERT_TRUE(listener);
    EXPECT_EQ(listener->accept(2ms).error(), io_error::timed_out);
    EXPECT_TRUE(pirn::unix_listener::adopt(std::move(taken[1].socket)));
    EXPECT_TRUE(pirn::udp_socket::adopt(std::move(taken[2].socket)));
    EXPECT_TRUE(pirn::take_inherited_sockets()->empty());
  });
}

TEST(inherited_sockets, need_no_names_and_may_be_none) {
  as_a_service([] {
    ASSERT_EQ(::dup2(::socket(AF_INET, SOCK_STREAM, 0), 3), 3);
    set("LISTEN_FDS", "1");
    const auto taken = pirn::take_inherited_sockets().value();
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken[0].name, "unknown");
    set("LISTEN_PID", std::to_string(::getpid()));
    set("LISTEN_FDS", "0");
    EXPECT_TRUE(pirn::take_inherited_sockets()->empty());
  });
}

TEST(inherited_sockets, of_another_process_are_left_alone) {
  as_a_service([] {
    ASSERT_EQ(::dup2(::socket(AF_INET, SOCK_STREAM, 0), 3), 3);
    set("LISTEN_PID", std::to_string(::getppid()));
    set("LISTEN_FDS", "1");
    EXPECT_TRUE(pirn::take_inherited_sockets()->empty());
    EXPECT_FALSE(variables_are_left());
    EXPECT_EQ(::fcntl(3, F_GETFD), 0);
  });
}

TEST(inherited_sockets, wrong_variables_are_errors) {
  const auto taken_with = [](const std::string& pid, const std::string& count, const std::string& names) {
    set("LISTEN_PID", pid);
    set("LISTEN_FDS", count);
    set("LISTEN_FDNAMES", names);
    const auto taken = pirn::take_inherited_sockets();
    EXPECT_FALSE(variables_are_left());
    return taken ? std::error_code() : taken.error();
  };
  as_a_service([&] {
    const std::string self = std::to_string(::getpid());
    ASSERT_EQ(::dup2(::socket(AF_INET, SOCK_STREAM, 0), 3), 3);
    for (const char* wrong : {"", "x", "-1", "1x", " 1", "4097", "99999999999"}) {
      EXPECT_EQ(taken_with(self, wrong, "a"), io_error::bad_syntax) << wrong;
    }
    EXPECT_EQ(taken_with(self, "4097", std::string(4096, ':')), io_error::bad_syntax);
    EXPECT_EQ(taken_with("x", "1", "a"), io_error::bad_syntax);
    EXPECT_EQ(::fcntl(3, F_GETFD), 0);
    EXPECT_EQ(taken_with(self, "1", "a:b"), io_error::bad_syntax);
    EXPECT_EQ(::fcntl(3, F_GETFD), FD_CLOEXEC);  // still open
    ::close(4);
    ASSERT_EQ(::dup2(3, 5), 5);
    EXPECT_EQ(taken_with(self, "4000", std::string(3999, ':')), std::errc::bad_file_descriptor);
    EXPECT_EQ(::fcntl(5, F_GETFD), FD_CLOEXEC);
  });
}

TEST(inherited_sockets, are_closed_if_one_cannot_be_adopted) {
  as_a_service([] {
    ASSERT_EQ(::dup2(::socket(AF_INET, SOCK_STREAM, 0), STDIN_FILENO), STDIN_FILENO);
    ASSERT_EQ(::dup2(::socket(AF_INET, SOCK_STREAM, 0), 5), 5);
    ASSERT_EQ(::dup2(5, 3), 3);
    ASSERT_EQ(::dup2(STDIN_FILENO, 4), 4);
    set("LISTEN_FDS", "3");
    EXPECT_EQ(pirn::take_inherited_sockets().error(), io_error::shared);
    for (int i = 3; i < 6; ++i) {
      EXPECT_LT(::fcntl(i, F_GETFD), 0) << i;
    }
  });
}

}  // namespace
