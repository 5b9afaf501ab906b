// tcp_stream: both directions, ends and resets, connects, deadlines, stops, limits, and files.

#include "pirn/net/tcp_stream.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "io/pattern.hpp"
#include "net/support.hpp"
#include "pirn/io/any_stream.hpp"
#include "pirn/io/copy.hpp"

namespace {

using namespace test;
using pirn::io_error;
using pirn::ip_address;
using pirn::shutdown_half;
using pirn::tcp_listener;
using pirn::tcp_stream;

/// Makes the peer's next read or write fail with a reset.
void reset(tcp_stream& stream) {
  const linger at_once{1, 0};
  ASSERT_EQ(::setsockopt(stream.native(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  stream.close();
}

TEST(tcp_stream, carries_bytes_both_ways) {
  both_ways([] {
    for (const auto& address : {ip_address::loopback_v4(), ip_address::loopback_v6()}) {
      connected c = connect_pair({address, 0});
      ASSERT_TRUE(c.client.write("ping"));
      char text[4];
      ASSERT_TRUE(c.server.read_exactly(text, 4));
      EXPECT_EQ(std::string_view(text, 4), "ping");
      const pirn::const_buffer parts[] = {{"p", 1}, {"", 0}, {"on", 2}, {"g", 1}};
      ASSERT_TRUE(c.server.write(parts));
      ASSERT_TRUE(c.client.read_exactly(text, 4));
      EXPECT_EQ(std::string_view(text, 4), "pong");
      EXPECT_TRUE(c.client.write(""));
      EXPECT_TRUE(c.client.write(std::span<const pirn::const_buffer>{}));
    }
  });
}

static_assert(pirn::stream<tcp_stream> && pirn::lending_stream<tcp_stream>);

TEST(tcp_stream, is_copied_through_any_stream) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    connected from = connect_pair();
    connected to = connect_pair();
    const std::string much = pattern(1 << 20);
    std::string got(much.size(), '\0');
    pirn::fiber writes = pirn::spawn(
        [&] {
          EXPECT_TRUE(from.client.write(much));
          EXPECT_TRUE(from.client.shutdown(shutdown_half::write));
        },
        {.worker = 1});
    pirn::fiber reads = pirn::spawn([&] { EXPECT_TRUE(to.server.read_exactly(got.data(), got.size())); });
    pirn::any_stream owner(std::move(from.server));
    EXPECT_EQ(pirn::copy(owner, to.client).written, much.size());
    EXPECT_EQ(pirn::any_stream(std::ref(to.client)).write_some("", 0), 0u);
    writes.join();
    reads.join();
    EXPECT_TRUE(got == much);
  });
}

TEST(tcp_stream, the_end_of_a_half_is_no_error) {
  both_ways([] {
    connected c = connect_pair();
    ASSERT_TRUE(c.client.write("last"));
    ASSERT_TRUE(c.client.shutdown(shutdown_half::write));
    char text[16];
    EXPECT_EQ(c.server.read_exactly(text, 5).error(), io_error::end_of_stream);
    EXPECT_EQ(std::string_view(text, 4), "last");
    EXPECT_EQ(c.server.read(text, sizeof text), 0u);
    ASSERT_TRUE(c.server.write("still"));  // the other half is open
    ASSERT_TRUE(c.client.read_exactly(text, 5));
    c.server.close();
    EXPECT_EQ(c.client.read(text, sizeof text), 0u);
  });
}

TEST(tcp_stream, a_reset_is_an_error_and_no_signal) {
  both_ways([] {
    char text[16];
    connected c = connect_pair();
    reset(c.server);
    EXPECT_EQ(c.client.read(text, sizeof text, in(long_enough)).error(), std::errc::connection_reset);
    EXPECT_EQ(c.client.write("x").error(), std::errc::broken_pipe);  // SIGPIPE would end the test
    const pirn::const_buffer part[] = {{"x", 1}};
    EXPECT_EQ(c.client.write(part).error(), std::errc::broken_pipe);
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(c.client.send_file(file, 0, 100).error(), std::errc::broken_pipe);
    ::close(file);
  });
}

TEST(tcp_stream, a_reader_that_waits_hears_of_a_reset) {
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    pirn::fiber reader = pirn::spawn([&] {
      char text[16];
      EXPECT_EQ(c.client.read(text, sizeof text).error(), std::errc::connection_reset);
    });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    reset(c.server);
    reader.join();
  });
}

TEST(tcp_stream, connection_refused) {
  both_ways([] {
    auto listener = tcp_listener::listen(loopback());
    const auto at = *listener->local_endpoint();
    listener->close();
    EXPECT_EQ(tcp_stream::connect(at, in(long_enough)).error(), std::errc::connection_refused);
    EXPECT_EQ(tcp_stream::connect(at).error(), std::errc::connection_refused);
  });
}

/// Gives the calling thread, and the threads that it starts, a separate network with two ports for near ends.
bool has_own_network_of_two_ports() {
  if (::unshare(CLONE_NEWNET) != 0) {
    return false;
  }
  const pirn::descriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ::ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  return ::ioctl(control.native(), SIOCSIFFLAGS, &loopback) == 0 && (range << "40000 40001").flush().good();
}

// Without a listener, the kernel may choose the far end's port for the near end, and join the two.
TEST(tcp_stream, never_connects_to_itself) {
  bool possible = false;
  std::thread([&] {
    if (!has_own_network_of_two_ports()) {
      return;
    }
    possible = true;
    both_ways([] {
      const pirn::endpoint at{pirn::ip_address::loopback_v4(), 40'000};
      for (int i = 0; i < 100; ++i) {
        const auto stream = tcp_stream::connect(at, in(long_enough));
        ASSERT_FALSE(stream) << i;
        ASSERT_EQ(stream.error(), std::errc::connection_refused) << i;
      }
      EXPECT_TRUE(tcp_listener::listen(at, {.reuse_address = false}));  // none of them has left its port in use
    });
  }).join();
  if (!possible) {
    GTEST_SKIP() << "no network namespace";
  }
}

/// A listener whose queue is full: further connects hang until it accepts.
struct full_listener {
  full_listener() : listener(tcp_listener::listen(loopback(), {.backlog = 0}).value()) {
    at = listener.local_endpoint().value();
    for (int i = 0; i < 4; ++i) {
      auto client = tcp_stream::connect(at, in(20ms));
      if (!client) {
        break;
      }
      clients.push_back(std::move(*client));
    }
  }
  tcp_listener listener;
  pirn::endpoint at;
  std::vector<tcp_stream> clients;
};

TEST(tcp_stream, deadline_and_stop_end_a_connect) {
  both_ways([] {
    full_listener full;
    EXPECT_EQ(tcp_stream::connect(full.at, in(5ms)).error(), io_error::timed_out);
    EXPECT_EQ(tcp_stream::connect(full.at, in(-1ms)).error(), io_error::timed_out);
  });
  pirn::runtime({.workers = 1}).run([] {
    full_listener full;
    stop_while_blocked([&] { EXPECT_EQ(tcp_stream::connect(full.at).error(), io_error::stopped); });
  });
}

TEST(tcp_stream, deadline_ends_every_call) {
  both_ways([] {
    connected c = connect_pair();
    char text[16];
    EXPECT_EQ(c.client.read(text, sizeof text, in(5ms)).error(), io_error::timed_out);
    EXPECT_EQ(c.client.wait_readable(in(5ms)).error(), io_error::timed_out);
    ASSERT_TRUE(c.server.write("abc"));
    EXPECT_EQ(c.client.read_exactly(text, 4, in(5ms)).error(), io_error::timed_out);
    const std::string much(16 << 20, 'm');
    EXPECT_EQ(c.client.write(much, in(20ms)).error(), io_error::timed_out);
    const pirn::const_buffer part[] = {{much.data(), much.size()}};
    EXPECT_EQ(c.client.write(part, in(5ms)).error(), io_error::timed_out);
    // The kernel may find more room for buffers meanwhile, but not for ever.
    const auto last_error = [](auto call) {
      auto done = call();
      while (done) {
        done = call();
      }
      return done.error();
    };
    EXPECT_EQ(last_error([&] { return c.client.write_some(much.data(), 1000, in(5ms)); }), io_error::timed_out);
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(last_error([&] { return c.client.send_file(file, 0, 1000, in(5ms)); }), io_error::timed_out);
    ::close(file);
  });
}

TEST(tcp_stream, stop_ends_every_call) {
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    stop_while_blocked([&] {
      char text[16];
      EXPECT_EQ(c.client.read(text, sizeof text).error(), io_error::stopped);
      EXPECT_EQ(c.client.read_exactly(text, 1).error(), io_error::stopped);
      EXPECT_EQ(c.client.wait_readable().error(), io_error::stopped);
      EXPECT_EQ(c.client.write("x").error(), io_error::stopped);
    });
    stop_while_blocked([&] {
      const std::string much(16 << 20, 'm');
      EXPECT_EQ(c.client.write(much).error(), io_error::stopped);
    });
  });
}

TEST(tcp_stream, an_unconnected_one_is_closed) {
  tcp_stream none;
  char text[1];
  EXPECT_FALSE(none.is_open());
  EXPECT_EQ(none.read(text, 1).error(), io_error::closed);
  EXPECT_EQ(none.write("x").error(), io_error::closed);
  EXPECT_EQ(none.shutdown(shutdown_half::both).error(), io_error::closed);
  EXPECT_EQ(none.set_delay(tcp_stream::delay::none).error(), io_error::closed);
  EXPECT_EQ(none.remote_endpoint().error(), io_error::closed);
  none.close();
}

TEST(tcp_stream, one_fiber_reads_while_another_writes) {
  const std::string sent = pattern(large_transfer);
  pirn::runtime runtime({.workers = 2});
  runtime.run([&] {
    connected c = connect_pair();
    const auto send = [&](tcp_stream& on) {
      ASSERT_TRUE(on.write(sent, in(60s)));
      ASSERT_TRUE(on.shutdown(shutdown_half::write));
    };
    const auto receive = [&](tcp_stream& on) {
      std::string got(large_transfer, '\0');
      ASSERT_TRUE(on.read_exactly(got.data(), got.size(), in(60s)));
      EXPECT_TRUE(got == sent);
      char more;
      EXPECT_EQ(on.read(&more, 1, in(60s)), 0u);
    };
    pirn::fiber fibers[] = {
        pirn::spawn([&] { send(c.client); }, {.worker = 0}),
        pirn::spawn([&] { receive(c.client); }, {.worker = 1}),
        pirn::spawn([&] { send(c.server); }, {.worker = 1}),
        pirn::spawn([&] { receive(c.server); }, {.worker = 0}),
    };
    for (pirn::fiber& f : fibers) {
      f.join();
    }
  });
}

TEST(tcp_stream, a_fiber_talks_to_a_thread) {
  const std::string sent = pattern(1 << 20);
  connected c = connect_pair();
  std::thread thread([&] {
    std::string got(sent.size(), '\0');
    EXPECT_TRUE(c.server.read_exactly(got.data(), got.size(), in(long_enough)));
    EXPECT_TRUE(c.server.write(got, in(long_enough)));
  });
  pirn::runtime({.workers = 1}).run([&] {
    std::string got(sent.size(), '\0');
    EXPECT_TRUE(c.client.write(sent, in(long_enough)));
    EXPECT_TRUE(c.client.read_exactly(got.data(), got.size(), in(long_enough)));
    EXPECT_TRUE(got == sent);
  });
  thread.join();
}

TEST(tcp_stream, more_parts_than_one_call_takes) {
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    const std::string sent = pattern(200 * 9973);
    std::vector<pirn::const_buffer> parts;
    for (std::size_t i = 0; i < 200; ++i) {
      parts.push_back({sent.data() + i * 9973, 9973});
    }
    pirn::fiber writer = pirn::spawn([&] { EXPECT_TRUE(c.client.write(parts, in(long_enough))); });
    std::string got(sent.size(), '\0');
    EXPECT_TRUE(c.server.read_exactly(got.data(), got.size(), in(long_enough)));
    EXPECT_TRUE(got == sent);
    writer.join();
  });
}

TEST(tcp_stream, writes_some_of_several_parts) {
  both_ways([] {
    connected c = connect_pair();
    const pirn::const_buffer parts[] = {{"p", 1}, {"", 0}, {"on", 2}, {"g", 1}};
    EXPECT_EQ(c.server.write_some(parts, in(long_enough)), 4u);
    EXPECT_EQ(c.server.write_some(std::span<const pirn::const_buffer>{}), 0u);
    char text[4];
    ASSERT_TRUE(c.client.read_exactly(text, 4));
    EXPECT_EQ(std::string_view(text, 4), "pong");
  });
}

/// Writes until the kernel accepts no more. Returns the bytes that it accepted.
std::size_t fill(tcp_stream& stream) {
  const std::string some(64 * 1024, 's');
  std::size_t taken = 0;
  while (const auto put = stream.write_some(some.data(), some.size(), in(50ms))) {
    taken += *put;
  }
  return taken;
}

TEST(tcp_stream, tells_what_the_peer_has_not_acknowledged) {
  both_ways([] {
    connected c = connect_pair();
    EXPECT_EQ(c.server.unacknowledged(), 0u);
    const std::size_t taken = fill(c.server);
    const auto left = c.server.unacknowledged();
    ASSERT_TRUE(left);
    EXPECT_GT(*left, 0u);
    EXPECT_LT(*left, taken);  // the peer's kernel holds some
    std::string got(taken, '\0');
    ASSERT_TRUE(c.client.read_exactly(got.data(), got.size(), in(long_enough)));
    const auto limit = in(long_enough);
    while (c.server.unacknowledged() != 0u && std::chrono::steady_clock::now() < limit) {
    }
    EXPECT_EQ(c.server.unacknowledged(), 0u);
    static_cast<void>(fill(c.server));
    reset(c.client);
    EXPECT_EQ(c.server.unacknowledged().error(), std::errc::connection_reset);
    c.server.close();
    EXPECT_EQ(c.server.unacknowledged().error(), io_error::closed);
  });
}

TEST(tcp_stream, a_limit_bounds_what_the_kernel_takes) {
  both_ways([] {
    connected c = connect_pair();
    ASSERT_TRUE(c.server.set_unsent_limit(128 * 1024));
    static_cast<void>(fill(c.server));
    EXPECT_LT(c.server.unacknowledged().value(), 768u * 1024);
    c.server.close();
    EXPECT_EQ(c.server.set_unsent_limit(1).error(), io_error::closed);
  });
}

TEST(tcp_stream, a_close_with_reset_drops_what_was_not_taken) {
  both_ways([] {
    connected c = connect_pair();
    const std::size_t taken = fill(c.server);
    c.server.close_with_reset();
    EXPECT_FALSE(c.server.is_open());
    std::string got(taken, '\0');
    EXPECT_EQ(c.client.read_exactly(got.data(), got.size(), in(long_enough)).error(), std::errc::connection_reset);
    c.server.close_with_reset();  // has no effect
  });
}

TEST(tcp_stream, sends_a_part_of_a_file) {
  char name[] = "/tmp/pirn_send_file_XXXXXX";
  pirn::descriptor file(::mkstemp(name));
  ::unlink(name);
  const std::string content = pattern(3 << 20);
  ASSERT_EQ(::pwrite(file.native(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  both_ways([&] {
    connected c = connect_pair();
    std::thread reader([&] {
      std::string got(content.size() - 5, '\0');
      EXPECT_TRUE(c.server.read_exactly(got.data(), got.size(), in(long_enough)));
      EXPECT_TRUE(std::string_view(content).substr(5) == got);
    });
    for (std::size_t at = 5; at < content.size();) {
      const auto put = c.client.send_file(file.native(), at, content.size() - at, in(long_enough));
      ASSERT_TRUE(put) << put.error().message();
      ASSERT_GT(*put, 0u);
      at += *put;
    }
    EXPECT_EQ(c.client.send_file(file.native(), content.size(), 10), 0u);
    reader.join();
  });
}

TEST(tcp_stream, an_end_that_comes_with_the_last_bytes_is_noticed) {
  // The reader gets one event for both. A short read must not make it wait for the end that this event has reported.
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    char text[16];
    for (int round = 0; round < 3; ++round) {
      pirn::fiber writer = pirn::spawn([&] { ASSERT_TRUE(c.client.write("x")); });
      ASSERT_EQ(c.server.read(text, sizeof text, in(long_enough)), 1u);
      writer.join();
    }
    pirn::fiber writer = pirn::spawn([&] {
      ASSERT_TRUE(c.client.write("last"));
      ASSERT_TRUE(c.client.shutdown(shutdown_half::write));
    });
    ASSERT_EQ(c.server.read(text, sizeof text, in(long_enough)), 4u);
    EXPECT_EQ(c.server.read(text, sizeof text, in(long_enough)), 0u);
    EXPECT_EQ(c.server.read(text, sizeof text, in(long_enough)), 0u);
    writer.join();
  });
}

TEST(tcp_stream, urgent_data_does_not_hide_what_follows) {
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    char text[16];
    EXPECT_EQ(c.server.read(text, sizeof text, in(5ms)).error(), io_error::timed_out);
    ASSERT_TRUE(c.client.write("ab"));
    ASSERT_EQ(::send(c.client.native(), "!", 1, MSG_OOB), 1);
    ASSERT_TRUE(c.client.write("cd"));
    ASSERT_TRUE(c.server.read_exactly(text, 4, in(long_enough)));
    EXPECT_EQ(std::string_view(text, 4), "abcd");
  });
}

TEST(tcp_stream, shutdown_of_the_reading_half_wakes_the_reader) {
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    pirn::fiber reader = pirn::spawn([&] {
      char text[1];
      EXPECT_EQ(c.client.read(text, 1), 0u);
    });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    ASSERT_TRUE(c.client.shutdown(shutdown_half::read));
    reader.join();
  });
}

TEST(tcp_stream, close_ends_a_read_under_way) {
  pirn::runtime({.workers = 2}).run([] {
    connected c = connect_pair();
    pirn::fiber reader = pirn::spawn(
        [&] {
          char text[1];
          EXPECT_EQ(c.client.read(text, 1).error(), io_error::closed);
        },
        {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    c.client.close();
    reader.join();
    char text[1];
    EXPECT_EQ(c.server.read(text, 1, in(long_enough)), 0u);
  });
}

}  // namespace
