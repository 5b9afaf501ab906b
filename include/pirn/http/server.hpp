// An HTTP/1.1 server: one fiber per connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "pirn/fiber/fiber.hpp"
#include "pirn/http/expert/server_statistics.hpp"
#include "pirn/http/message.hpp"
#include "pirn/net/acceptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Answers a request. Runs in the connection's fiber and may suspend. An exception from it becomes a 500.
using handler = std::function<void(const request&, response&)>;

/// The limits of a server. A client that exceeds one gets the named status and is cut off.
struct server_options {
  std::string name = "pirn";                            ///< of the Server header; empty for none
  std::size_t header_limit = std::size_t{16} * 1024;    ///< bytes of request line and headers: 414, 431
  std::size_t header_count_limit = 100;                 ///< 431
  std::size_t body_limit = std::size_t{1024} * 1024;    ///< bytes of request body: 413
  time_span header_timeout = std::chrono::seconds(10);  ///< from a request's first byte to the end of its headers: 408
  time_span body_timeout = std::chrono::seconds(30);    ///< for the whole body: 408
  std::size_t body_rate = 240;  ///< bytes per second of request body, after `body_grace`: 408; 0 for no limit
  time_span body_grace = std::chrono::seconds(5);  ///< for a body's first byte; up to twice that can be saved up
  time_span write_timeout =
      std::chrono::seconds(10);  ///< for each 256 KiB that the client acknowledges; up to twice that can be saved up
  time_span idle_timeout = std::chrono::seconds(60);  ///< between requests
  time_span linger_timeout =
      std::chrono::seconds(2);  ///< for data that a client still sends after it has taken the last response
  time_span drain_timeout = std::chrono::seconds(10);  ///< for requests under way when the server is stopped
  std::size_t stack_size = 0;                          ///< of a connection's fiber; 0 for the runtime's default
  /// The largest number of open connections. For one more, the connection that has waited longest for a request is
  /// closed. 0 stands for half of the descriptors that the process may still open, after eight are set aside. The other
  /// half is for the files that connections send.
  std::size_t connection_limit = 0;
  /// Called in the accepting fiber for each failure to accept a connection. May suspend; must not throw.
  std::function<void(const accept_trouble&)> accept_failed = {};
  /// The shortest time between two calls of `accept_failed`, to keep logs short. Failures in between are only counted
  /// (`accept_trouble::times`).
  time_span accept_failed_every{};
};

/// An HTTP/1.1 server with keep-alive, pipelining, chunked and sized request bodies, and 100-continue. Bad input gets a
/// 4xx (or 505); then the connection is closed without a reset. A connection goes to a worker with the fewest
/// connections, and stays there; workers with equally few take turns.
class server {
 public:
  /// Throws std::invalid_argument if the options' `name` cannot be the value of a header field.
  explicit server(handler answer, server_options options = {});
  /// Destroys the server. No fiber may be in `serve`.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Serves the connections of `listener` until `stop` is called or the calling fiber is asked to stop. Then it accepts
  /// the connections in the listener's queue as far as it can, closes the listener and idle connections, lets requests
  /// that have arrived finish within `drain_timeout`, and cuts off the rest. It returns when no connection is left. At
  /// the limit, and without a descriptor (or stack) for another connection, it closes the connection that has waited
  /// longest for a request, and pauses until one is closed. It skips failures of single connections; any other failure
  /// of the listener also ends it and is returned. Call from a fiber, once.
  result<> serve(tcp_listener& listener);
  /// Makes `serve` end as described, even if `serve` is called later. Any thread or fiber; does not suspend.
  void stop() noexcept;

  /// Returns the statistics up to now. Any thread or fiber.
  [[nodiscard]] server_statistics statistics() const noexcept;

 private:
  std::unique_ptr<class server_state> state_;
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
