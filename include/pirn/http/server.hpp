// An HTTP/1.1 server: one fiber per connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pirn/fiber/fiber.hpp"
#include "pirn/http/message.hpp"
#include "pirn/net/tcp_listener.hpp"

namespace pirn::inline PIRN_ABI::http {

/// Answers a request. Runs in the connection's fiber and may suspend. What it throws becomes a 500.
using handler = std::function<void(const request&, response&)>;

/// Limits. A client that oversteps one gets the named status and is cut off.
struct server_options {
  std::string name = "pirn";                            ///< of the Server header; empty for none
  std::size_t header_limit = std::size_t{16} * 1024;    ///< bytes of request line and headers: 414, 431
  std::size_t header_count_limit = 100;                 ///< 431
  std::size_t body_limit = std::size_t{1024} * 1024;    ///< bytes of request body: 413
  time_span header_timeout = std::chrono::seconds(10);  ///< from a request's first byte to the end of its headers: 408
  time_span body_timeout = std::chrono::seconds(30);    ///< for the whole body: 408
  time_span write_timeout =
      std::chrono::seconds(10);  ///< for each 256 KiB that the client acknowledges; as much as twice that is saved up
  time_span idle_timeout = std::chrono::seconds(60);  ///< between requests
  time_span linger_timeout =
      std::chrono::seconds(2);  ///< for what a client still sends when it has taken the last response
  time_span drain_timeout = std::chrono::seconds(10);  ///< for requests under way when the server is stopped
  std::size_t stack_size = 0;                          ///< of a connection's fiber; 0 for the runtime's default
};

/// Numbers about a server at one moment.
struct server_statistics {
  std::size_t connections = 0;      ///< open now
  std::uint64_t accepted = 0;       ///< ever
  std::uint64_t accept_pauses = 0;  ///< how often there was no descriptor or stack for a connection
};

/// Keep-alive, pipelining, chunked and sized request bodies, 100-continue. Bad input gets a 4xx (or 505), then the
/// connection is closed without a reset. Connections go to the workers of the runtime in turn.
class server {
 public:
  /// Throws std::invalid_argument for a name that is none.
  explicit server(handler answer, server_options options = {});
  /// Nobody may be in `serve`.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Serves the connections of `listener` until `stop` is called or the calling fiber is asked to stop. Then accepts
  /// what is in the listener's queue and closes it, closes idle connections, lets requests that have arrived finish
  /// within `drain_timeout`, cuts the rest, and returns when no connection is left. While there is no descriptor (or
  /// stack) for another connection it pauses, until one is closed. Any other failure of the listener ends it too and is
  /// returned. From a fiber; once.
  result<> serve(tcp_listener& listener);
  /// Makes `serve` end as described, also when it is called later. Any thread or fiber; does not suspend.
  void stop() noexcept;

  [[nodiscard]] server_statistics statistics() const noexcept;

 private:
  std::unique_ptr<class server_state> state_;
};

}  // namespace pirn::inline PIRN_ABI::http
