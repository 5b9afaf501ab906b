// A connection on the network of an exploration.
#pragma once

#include <pirn/net/tcp_listener.hpp>
#include <pirn/net/tcp_stream.hpp>

namespace pirn_test {

/// The two ends of a connection that no engine knows yet.
struct connected {
  connected() {
    auto listener = pirn::tcp_listener::listen({pirn::ip_address::loopback_v4(), 0}).value();
    here = pirn::tcp_stream::connect(listener.local_endpoint().value()).value();
    there = listener.accept().value();
  }
  pirn::tcp_stream here, there;
};

}  // namespace pirn_test
