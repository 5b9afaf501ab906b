// The memory that a connection holds between requests, as measured by the system.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "http/child_server.hpp"

namespace {

using namespace test;

constexpr std::size_t documented_kib = 14;  // docs/http.md
constexpr std::size_t slack_kib = 2;        // of the rest of the process

/// `count` connections that have had one small request answered, and the memory that the server holds for each.
class idle_connections {
 public:
  idle_connections(child_server& server, std::size_t count) : server_(server) {
    clients_.emplace_back(server_.at);  // allocations for the very first connection are not counted
    EXPECT_EQ(clients_.back().ask(get_hello).status, 200);
    before_ = server_.resident_kib();
    for (std::size_t i = 0; i < count; ++i) {
      clients_.emplace_back(server_.at);
      EXPECT_EQ(clients_.back().ask(get_hello).status, 200);
    }
  }

  [[nodiscard]] std::size_t kib_each() {
    EXPECT_EQ(clients_.front().ask(get_hello).status, 200);  // after that the others are idle
    return (std::max(server_.resident_kib(), before_) - before_) / (clients_.size() - 1);
  }
  std::vector<client>& clients() { return clients_; }

 private:
  child_server& server_;
  std::vector<client> clients_;
  std::size_t before_ = 0;
};

class memory : public testing::Test {
 protected:
  void SetUp() override {
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
    GTEST_SKIP() << "sanitizers keep what is given back";
#endif
  }
};

TEST_F(memory, of_a_connection_after_a_small_request_is_what_is_documented) {
  child_server server;
  pirn::runtime({.workers = 1}).run([&] {
    idle_connections idle(server, 200);
    EXPECT_LE(idle.kib_each(), documented_kib + slack_kib);
  });
}

TEST_F(memory, of_a_connection_is_the_same_after_a_large_request) {
  child_server server;
  pirn::runtime({.workers = 1}).run([&] {
    idle_connections idle(server, 100);
    const std::string half(500'000, 'h');
    // Several rounds, since an allocator may keep memory from the second time on.
    for (int round = 0; round < 3; ++round) {
      for (client& c : idle.clients()) {
        c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + half);
      }
      for (client& c : idle.clients()) {
        ASSERT_EQ(c.ask(half).status, 200);
      }
      EXPECT_LE(idle.kib_each(), documented_kib + slack_kib) << "in round " << round;
    }
  });
}

TEST_F(memory, of_a_connection_is_the_same_after_a_large_response) {
  child_server server;
  pirn::runtime({.workers = 1}).run([&] {
    idle_connections idle(server, 20);
    for (int round = 0; round < 3; ++round) {
      for (client& c : idle.clients()) {
        c.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
      }
      for (client& c : idle.clients()) {
        ASSERT_EQ(c.receive().body.size(), std::size_t{10} << 20);
      }
      EXPECT_LE(idle.kib_each(), documented_kib + 5 * slack_kib)  // more slack for each of the few
          << "in round " << round;
    }
  });
}

TEST_F(memory, of_a_connection_is_the_same_after_many_requests_at_once) {
  child_server server;
  pirn::runtime({.workers = 1}).run([&] {
    constexpr int at_once = 3000;
    std::string many;
    for (int i = 0; i < at_once; ++i) {
      many += get_hello;
    }
    idle_connections idle(server, 100);
    for (client& c : idle.clients()) {
      c.send(many);
    }
    for (client& c : idle.clients()) {
      for (int i = 0; i < at_once; ++i) {
        ASSERT_EQ(c.receive().status, 200);
      }
    }
    EXPECT_LE(idle.kib_each(), documented_kib + slack_kib);
  });
}

}  // namespace
