// What the connections of one server share.
#pragma once

#include "pirn/fiber/stop.hpp"
#include "pirn/http/server.hpp"

namespace pirn::inline PIRN_ABI::http {

class connection;

class server_state {
 public:
  server_state(handler what, server_options how) : answer(std::move(what)), options(std::move(how)) {}

  const handler answer;
  const server_options options;
  stop_source accepting;  ///< stopped when no more connections are wanted
  stop_source serving;    ///< stopped when those that are left are cut off
  platform::atomic<bool> draining{false};
  platform::atomic<std::uint64_t> accepted{0};
  platform::atomic<std::uint64_t> pauses{0};

  /// Waits of those who want a connection to end; its lock guards the list of connections.
  wait_queue ended;
  connection* first = nullptr;
  std::size_t count = 0;  ///< those announced, whether listed yet or not

  /// Counts a connection that is about to be served; `retract` is for one that then is not.
  void announce() noexcept;
  void retract() noexcept;
  /// Lists a connection; `leave` closes it and ends what `announce` began.
  void enter(connection& c) noexcept;
  void leave(connection& c) noexcept;
  /// Closes connections that are between requests; the others find out when their request is answered.
  void close_idle() noexcept;
  /// Waits until at least one connection has ended; at once if there is none.
  void wait_for_one(const wait_options& how) noexcept;
  /// Waits until there are no connections; false if the deadline came first.
  bool wait_for_all(platform::time_point deadline) noexcept;
};

}  // namespace pirn::inline PIRN_ABI::http
