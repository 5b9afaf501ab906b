// An HTTP/1.1 server: one fiber per connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "pirn/fiber/fiber.hpp"
#include "pirn/http/message.hpp"
#include "pirn/net/acceptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

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
  std::size_t body_rate = 240;  ///< bytes per second of request body, after `body_grace`: 408; 0 for no limit
  time_span body_grace = std::chrono::seconds(5);  ///< for a body's first byte; as much as twice that is saved up
  time_span write_timeout =
      std::chrono::seconds(10);  ///< for each 256 KiB that the client acknowledges; as much as twice that is saved up
  time_span idle_timeout = std::chrono::seconds(60);  ///< between requests
  time_span linger_timeout =
      std::chrono::seconds(2);  ///< for what a client still sends when it has taken the last response
  time_span drain_timeout = std::chrono::seconds(10);  ///< for requests under way when the server is stopped
  std::size_t stack_size = 0;                          ///< of a connection's fiber; 0 for the runtime's default
  /// How many connections may be open. For one more, the one that has waited longest for a request is closed. 0 for
  /// half of the descriptors that the process may still open, but for eight: the other half is for the files that they
  /// send.
  std::size_t connection_limit = 0;
  /// Told of each failure to accept a connection, in the accepting fiber. May suspend; must not throw.
  std::function<void(const accept_trouble&)> accept_failed = {};
  /// For so long after a failure was told others are only counted (`accept_trouble::times`): for logs.
  time_span accept_failed_every{};
};

/// Numbers about a server at one moment.
struct server_statistics {
  std::size_t connections = 0;        ///< open now
  std::uint64_t accepted = 0;         ///< ever
  std::uint64_t accept_pauses = 0;    ///< how often there was no descriptor or stack for a connection, or no place
  std::uint64_t accept_failures = 0;  ///< connections that were lost before they were accepted, and shortages
  std::uint64_t made_room = 0;        ///< connections that were closed for others
};

/// Keep-alive, pipelining, chunked and sized request bodies, 100-continue. Bad input gets a 4xx (or 505), then the
/// connection is closed without a reset. A connection goes to a worker that has the fewest of them, among those in
/// turn, and stays there.
class server {
 public:
  /// Throws std::invalid_argument for a name that is none.
  explicit server(handler answer, server_options options = {});
  /// Nobody may be in `serve`.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Serves the connections of `listener` until `stop` is called or the calling fiber is asked to stop. Then accepts
  /// what is in the listener's queue, as far as it can, and closes it, closes idle connections, lets requests that have
  /// arrived finish within `drain_timeout`, cuts the rest, and returns when no connection is left. While there is no
  /// descriptor (or stack) for another connection, and at the limit, it closes the one that has waited longest for a
  /// request, and pauses until one is closed. Failures of single connections are passed over. Any other failure of the
  /// listener ends it too and is returned. From a fiber; once.
  result<> serve(tcp_listener& listener);
  /// Makes `serve` end as described, also when it is called later. Any thread or fiber; does not suspend.
  void stop() noexcept;

  [[nodiscard]] server_statistics statistics() const noexcept;

 private:
  std::unique_ptr<class server_state> state_;
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
