// The state that the connections of one server share.
#pragma once

#include <array>

#include "net/accept_loop.hpp"
#include "pirn/detail/intrusive_list.hpp"
#include "pirn/fiber/stop.hpp"
#include "pirn/http/server.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

class connection;

class server_state final : public pirn::detail::accept_loop::owner {
 public:
  server_state(handler what, server_options requested);

  const handler answer;
  const server_options options;
  stop_source accepting;  ///< stopped when no more connections are wanted
  stop_source serving;    ///< stopped when the remaining connections are cut off
  platform::atomic<bool> draining{false};
  platform::atomic<std::uint64_t> made_room{0};

  /// The lock of its `ended` guards the list of connections.
  pirn::detail::accept_loop loop;
  pirn::detail::intrusive_list<connection> connections;

  std::error_code begin(tcp_stream&& taken, unsigned worker) noexcept override;
  void tell(const accept_trouble& trouble) noexcept override;
  /// Adds a connection to the list. `leave` removes it, closes it, and gives its place back.
  void enter(connection& c) noexcept;
  void leave(connection& c) noexcept;
  /// Closes connections that are between requests; the others notice the end when they have answered their request.
  void close_idle() noexcept;
  /// Makes the connection end that has waited longest for a request; returns false if none waits.
  bool make_room() noexcept override;

 private:
  void find_waiting() noexcept;

  /// The connections that had waited longest at the last search, in that order. A connection that begins to wait later
  /// belongs behind them, so the list stays right until it is used up. Under the lock.
  struct waiting {
    connection* who;
    platform::duration::rep since;
  };
  std::array<waiting, 32> longest_waiting_;
  std::size_t next_waiting_ = 0;
  std::size_t end_of_waiting_ = 0;
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
