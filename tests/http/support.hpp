// A server on a loopback port, and a client that sees every byte.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <string>
#include <string_view>

#include "net/support.hpp"
#include "pirn/http/server.hpp"

namespace test {

/// Serves in the calling fiber's runtime until it is destroyed.
class running_server {
 public:
  explicit running_server(pirn::http::handler answer, pirn::http::server_options options = {})
      : server(std::move(answer), std::move(options)), listener_(pirn::tcp_listener::listen(loopback()).value()) {
    at = listener_.local_endpoint().value();
    serving_ = pirn::spawn([this] { outcome = server.serve(listener_); });
  }
  ~running_server() { stop(); }
  running_server(const running_server&) = delete;
  running_server& operator=(const running_server&) = delete;
  void stop() {
    server.stop();
    if (serving_.joinable()) {
      serving_.join();
    }
  }

  pirn::http::server server;
  pirn::endpoint at;
  pirn::result<> outcome;

 private:
  pirn::tcp_listener listener_;
  pirn::fiber serving_;
};

/// Runs `body(running_server&)` beside a server, in a runtime with `workers` workers; then the server ends cleanly.
template <unsigned workers = 2, class Body>
void with_server(pirn::http::handler answer, pirn::http::server_options options, Body body) {
  pirn::runtime({.workers = workers}).run([&] {
    running_server running(std::move(answer), std::move(options));
    body(running);
    running.stop();
    EXPECT_TRUE(running.outcome) << running.outcome.error().message();
    EXPECT_EQ(running.server.statistics().connections, 0u);
  });
}

struct reply {
  int status = 0;
  std::string head;
  std::string body;
  [[nodiscard]] std::string field(std::string_view name) const {
    const std::size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) {
      return {};
    }
    const std::size_t begin = at + 2 + name.size() + 2;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

/// A client connection that parses just enough.
class client {
 public:
  explicit client(const pirn::endpoint& to) : stream(pirn::tcp_stream::connect(to, in(long_enough)).value()) {
    EXPECT_TRUE(stream.set_delay(pirn::tcp_stream::delay::none));  // pieces that are sent separately arrive separately
  }

  void send(std::string_view text) { ASSERT_TRUE(stream.write(text, in(long_enough))); }

  /// Returns the next response; status 0 if the connection ended instead, -1 if it was reset or timed out.
  reply receive(bool has_body = true) {
    reply got;
    std::size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (const int problem = more()) {
        got.status = problem == 1 ? 0 : -1;
        return got;
      }
    }
    got.head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    got.status = std::stoi(got.head.substr(9, 3));
    const std::string length = got.field("Content-Length");
    const std::size_t size = has_body && !length.empty() ? std::stoul(length) : 0;
    while (buffer_.size() < size) {
      if (more() != 0) {
        got.status = -1;
        return got;
      }
    }
    got.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return got;
  }
  reply ask(std::string_view text, bool has_body = true) {
    send(text);
    return receive(has_body);
  }
  reply get(std::string_view target, std::string_view headers = "") {
    return ask("GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n");
  }
  /// Returns whether the server ends the connection, without a reset and without another byte.
  bool ends_cleanly() { return buffer_.empty() && more() == 1; }

  pirn::tcp_stream stream;

 private:
  /// Returns 0 if bytes arrived, 1 at the end, 2 after an error.
  int more() {
    char bytes[16384];
    const auto got = stream.read(bytes, sizeof bytes, in(long_enough));
    if (!got) {
      return 2;
    }
    buffer_.append(bytes, *got);
    return *got == 0 ? 1 : 0;
  }
  std::string buffer_;
};

inline void hello(const pirn::http::request&, pirn::http::response& answer) { answer.body("Hello, world!\n"); }

inline constexpr std::string_view get_hello = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

/// Returns whether the condition has become true before the test gives up.
bool wait_until(auto condition) {
  const auto limit = in(long_enough);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit || !pirn::this_fiber::sleep_for(1ms)) {
      return false;
    }
  }
  return true;
}

}  // namespace test
