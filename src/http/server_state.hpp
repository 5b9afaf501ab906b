// What the connections of one server share.
#pragma once

#include <array>

#include "pirn/fiber/stop.hpp"
#include "pirn/http/server.hpp"
#include "pirn/net/acceptor.hpp"

namespace pirn::inline PIRN_ABI::http {

class connection;

class server_state {
 public:
  server_state(handler what, server_options how);

  const handler answer;
  const server_options options;
  stop_source accepting;  ///< stopped when no more connections are wanted
  stop_source serving;    ///< stopped when those that are left are cut off
  platform::atomic<bool> draining{false};
  platform::atomic<std::uint64_t> accepted{0};
  platform::atomic<std::uint64_t> pauses{0};
  platform::atomic<std::uint64_t> failures{0};
  platform::atomic<std::uint64_t> made_room{0};
  const std::size_t limit;        ///< of connections
  worker_turns* turns = nullptr;  ///< while the server serves

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
  /// Has the connection end that has waited longest for a request; false if none does.
  bool make_room() noexcept;
  /// Waits until at least one connection has ended; at once if there is none.
  void wait_for_one(const wait_options& how) noexcept;
  /// Waits until there are fewer connections than the limit; false where the moment came before, or a stop of the
  /// fiber.
  bool wait_for_place(platform::time_point until) noexcept;
  /// Waits until there are no connections; false if the deadline came first.
  bool wait_for_all(platform::time_point deadline) noexcept;

 private:
  void find_waiting() noexcept;

  /// Those that had waited longest when they were last looked for, in that order. What begins to wait later is behind
  /// them, so the list is right as long as it lasts. Under the lock.
  struct waiting {
    connection* who;
    platform::duration::rep since;
  };
  std::array<waiting, 32> longest_waiting_;
  std::size_t next_waiting_ = 0;
  std::size_t end_of_waiting_ = 0;
};

}  // namespace pirn::inline PIRN_ABI::http
