// Clients that read a response slowly: those that keep up are served, the others are cut off, and the rest of their
// response is dropped.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "http/support.hpp"

namespace {

using namespace test;
namespace http = pirn::http;

constexpr std::size_t step = std::size_t{256} * 1024;  // the bytes that a client must take within `write_timeout`

/// 300 MB without a disk.
void endless(const http::request&, http::response& answer) {
  const int file = ::memfd_create("endless", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 300'000'000), 0);
  answer.file(pirn::descriptor(file), 0, 300'000'000);
}

/// Reads `rate` bytes a second for `time`. Returns whether it was served until then.
bool read_steadily(client& c, double rate, pirn::platform::duration time) {
  const auto begin = std::chrono::steady_clock::now();
  double taken = 0;
  std::vector<char> into(64 * 1024);
  for (;;) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (elapsed >= time) {
      return true;
    }
    const auto due = static_cast<std::size_t>(std::max(0.0, elapsed.count() * rate - taken));
    if (due > 0) {
      const auto got = c.stream.read(into.data(), std::min(due, into.size()), in(long_enough));
      if (!got || *got == 0) {
        return false;
      }
      taken += static_cast<double>(*got);
    } else if (!pirn::this_fiber::sleep_for(5ms)) {
      return false;
    }
  }
}

/// The unacknowledged bytes that the kernel holds for a server's connections: the largest number, and the sum.
struct queued {
  std::size_t largest = 0;
  std::size_t all = 0;
};
queued queued_at(const pirn::endpoint& server) {
  std::ifstream table("/proc/net/tcp");
  queued found;
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues;
    fields >> number >> local >> remote >> state >> queues;
    const std::size_t colon = local.find(':');
    if (colon == std::string::npos || std::stoul(local.substr(colon + 1), nullptr, 16) != server.port ||
        state == "0A") {
      continue;
    }
    const std::size_t waiting = std::stoul(queues, nullptr, 16);
    found.largest = std::max(found.largest, waiting);
    found.all += waiting;
  }
  return found;
}

TEST(slow_readers, that_keep_up_are_served) {
  const auto limit = 500ms;
  with_server(endless, {.write_timeout = limit}, [&](running_server& running) {
    const double floor = static_cast<double>(step) / std::chrono::duration<double>(limit).count();
    std::vector<pirn::fiber> readers;
    for (const double times : {1.5, 2.5, 4.0}) {
      readers.push_back(pirn::spawn([&running, rate = times * floor] {
        client c(running.at);
        c.send(get_hello);
        EXPECT_TRUE(read_steadily(c, rate, 4s)) << "at " << rate << " bytes a second";
      }));
    }
    for (pirn::fiber& reader : readers) {
      reader.join();
    }
  });
}

TEST(slow_readers, that_do_not_keep_up_are_cut) {
  const auto limit = 100ms;
  with_server(endless, {.write_timeout = limit}, [&](running_server& running) {
    client c(running.at);
    c.send(get_hello);
    const double floor = static_cast<double>(step) / std::chrono::duration<double>(limit).count();
    EXPECT_FALSE(read_steadily(c, 0.25 * floor, long_enough));
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().connections == 0; }));
  });
}

TEST(slow_readers, that_read_nothing_hold_little_and_that_only_until_they_are_cut) {
  with_server(endless, {.write_timeout = 300ms, .linger_timeout = 50ms}, [](running_server& running) {
    std::vector<client> clients;
    for (int i = 0; i < 20; ++i) {
      clients.emplace_back(running.at);
      clients.back().send(get_hello);
    }
    std::size_t largest = 0;
    EXPECT_TRUE(wait_until([&] {
      largest = std::max(largest, queued_at(running.at).largest);
      return running.server.statistics().accepted == clients.size() && running.server.statistics().connections == 0;
    }));
    EXPECT_GT(largest, 0u);
    EXPECT_LT(largest, 1024u * 1024);
    EXPECT_EQ(queued_at(running.at).all, 0u) << "still offered to clients that were cut";
    for (client& c : clients) {
      EXPECT_EQ(c.receive().status, -1) << "no reset";
    }
  });
}

/// Asks for small responses without end, and reads `rate` bytes of them a second. Returns whether it was served until
/// then.
bool pipeline_steadily(const pirn::endpoint& server, double rate, pirn::platform::duration time) {
  client c(server);
  const int buffer = 64 * 1024;
  EXPECT_EQ(::setsockopt(c.stream.native(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer), 0);
  std::string many;
  for (int i = 0; i < 100; ++i) {
    many += get_hello;
  }
  pirn::fiber asker = pirn::spawn([&] {
    while (c.stream.write(many)) {
    }
  });
  const bool served = read_steadily(c, rate, time);
  asker.request_stop();
  asker.join();
  return served;
}

void small(const http::request&, http::response& answer) { answer.body(std::string(1000, 's')); }

TEST(slow_readers, of_many_small_responses_are_measured_by_all_of_them) {
  pirn::runtime({.workers = 2}).run([] {
    const auto limit = 300ms;
    const double floor = static_cast<double>(step) / std::chrono::duration<double>(limit).count();
    running_server running(small, {.write_timeout = limit});
    EXPECT_FALSE(pipeline_steadily(running.at, 0.6 * floor, 10s));  // each write is in time
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().connections == 0; }));
    for (const double times : {1.5, 3.0}) {
      EXPECT_TRUE(pipeline_steadily(running.at, times * floor, 3s)) << times;
    }
  });
}

TEST(slow_readers, that_ask_for_little_may_take_it_slowly) {
  pirn::runtime({.workers = 2}).run([] {
    running_server running(small, {.write_timeout = 100ms});
    client c(running.at);
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(c.ask(get_hello).status, 200);  // a hundredth of the requirement for connections in debt
      ASSERT_TRUE(pirn::this_fiber::sleep_for(i % 10 == 0 ? 250ms : 20ms));
    }
  });
}

/// A response that fits the kernel's buffers, so that it is written long before the client has taken it.
void small_enough(const http::request&, http::response& answer) { answer.body(std::string(250'000, 's')); }

TEST(slow_readers, of_the_last_response_are_given_their_time) {
  pirn::runtime({.workers = 2}).run([] {
    running_server running(small_enough, {.linger_timeout = 10ms});
    client c(running.at);
    c.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    ASSERT_TRUE(pirn::this_fiber::sleep_for(200ms));
    EXPECT_EQ(running.server.statistics().connections, 1u);  // not left to the kernel
    EXPECT_EQ(c.receive().body.size(), 250'000u);
    EXPECT_TRUE(c.ends_cleanly());
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().connections == 0; }));
  });
}

TEST(slow_readers, of_the_last_response_that_have_ended_their_half_are_given_their_time_too) {
  pirn::runtime({.workers = 2}).run([] {
    running_server running(small_enough, {.linger_timeout = 10ms});
    client c(running.at);
    c.send(get_hello);
    ASSERT_TRUE(c.stream.shutdown(pirn::shutdown_half::write));
    ASSERT_TRUE(pirn::this_fiber::sleep_for(200ms));
    EXPECT_EQ(c.receive().body.size(), 250'000u);
    EXPECT_TRUE(c.ends_cleanly());
    EXPECT_TRUE(wait_until([&] { return running.server.statistics().connections == 0; }));
  });
}

TEST(slow_readers, of_the_last_response_that_read_nothing_are_cut) {
  for (const bool half_ended : {false, true}) {
    for (const bool idle : {false, true}) {
      pirn::runtime({.workers = 2}).run([&] {
        running_server running(small_enough, {.write_timeout = 100ms, .idle_timeout = 50ms, .linger_timeout = 10ms});
        client c(running.at);
        c.send(idle ? get_hello : "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        if (half_ended) {
          ASSERT_TRUE(c.stream.shutdown(pirn::shutdown_half::write));
        }
        EXPECT_TRUE(wait_until(
            [&] { return running.server.statistics().accepted == 1 && running.server.statistics().connections == 0; }));
        EXPECT_EQ(queued_at(running.at).all, 0u) << "half ended: " << half_ended << ", idle: " << idle;
      });
    }
  }
}

}  // namespace
