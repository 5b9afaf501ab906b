// Shared by the tests of net and http.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "pirn/fiber/runtime.hpp"
#include "pirn/net/tcp_listener.hpp"

namespace test {

using namespace std::chrono_literals;

inline constexpr auto long_enough = 20s;  ///< no successful call takes this long, even under a sanitizer

/// Bytes of a large transfer.
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
inline constexpr std::size_t large_transfer = 4 << 20;
#else
inline constexpr std::size_t large_transfer = 32 << 20;
#endif

inline std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

inline pirn::endpoint loopback(std::uint16_t port = 0) { return {pirn::ip_address::loopback_v4(), port}; }

struct connected {
  pirn::tcp_stream client, server;
};

/// Returns both ends of a new connection.
inline connected connect_pair(const pirn::endpoint& at = loopback()) {
  auto listener = pirn::tcp_listener::listen(at).value();
  connected made;
  made.client = pirn::tcp_stream::connect(listener.local_endpoint().value(), in(long_enough)).value();
  made.server = listener.accept(in(long_enough)).value();
  return made;
}

/// Runs a body as a fiber and as a plain thread.
template <class Body>
void both_ways(Body body) {
  {
    SCOPED_TRACE("fiber");
    pirn::runtime({.workers = 1}).run(body);
  }
  {
    SCOPED_TRACE("thread");
    body();
  }
}

/// Asks a fiber that runs `call` to stop once the fiber has begun to wait.
template <class Call>
void stop_while_blocked(Call call) {
  pirn::fiber blocked = pirn::spawn(std::move(call));
  ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
  blocked.request_stop();
  blocked.join();
}

}  // namespace test
