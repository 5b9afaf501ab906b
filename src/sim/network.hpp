// The network of an execution: sockets that behave as Linux's non-blocking ones do.
//
// Every operation is made of steps (`execution::touch`), each at the one pipe or port whose state it changes there, so
// that the reduction knows which operations matter to each other. Whoever watches a socket is told after the step.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

/// What has happened to a socket, for the one who asked.
struct event {
  void* of = nullptr;  ///< what the socket was watched as
  bool readable = false;
  bool writable = false;
  bool hup_or_error = false;  ///< the end of the stream, or an error
};

/// Where events go, as an epoll instance. Whoever waits for them waits for `told`; the events change in steps at it.
struct event_queue {
  platform::atomic<std::uint32_t> told{0};
  std::vector<event> events;
  std::vector<void*> watched;  ///< no event is of anything else
};

struct watch {
  std::shared_ptr<event_queue> queue;
  void* of;
};
using watches = std::vector<watch>;
/// What is to be told after a step.
using news = std::vector<std::pair<std::shared_ptr<event_queue>, event>>;

struct port;

/// One direction of a connection.
struct pipe {
  struct packet {
    enum class kind : std::uint8_t { accepted, refused, data, end, reset };
    platform::time_point arrives;
    kind what;
    std::string bytes;
  };
  /// What the reader has taken, of which its writer does not know yet.
  struct taken {
    platform::time_point arrives;
    std::size_t bytes;
  };
  std::deque<packet> flying;
  std::deque<taken> returning;
  std::string arrived;
  std::size_t used = 0;  ///< bytes that have been sent and, as far as the writer knows, not been taken
  unsigned partitions = 0;
  bool ended = false;        ///< the writer has said its last
  bool at_end = false;       ///< and that has arrived
  bool not_read = false;     ///< the reader has shut down its half
  bool reader_gone = false;  ///< or both halves: data that arrives is answered with a reset
  bool cut = false;          ///< a reset has arrived: nothing else will
  bool broken = false;       ///< the same, for the writer
  bool wants_room = false;
  int read_error = 0, write_error = 0;  ///< of the socket at that end: told by one of its pipes, once
  watches readers, writers;

  [[nodiscard]] bool readable() const noexcept { return !arrived.empty() || at_end || not_read || cut; }
  [[nodiscard]] bool writable() const noexcept { return used < capacity || ended || broken; }
  static constexpr std::size_t capacity = 4096;
};

struct connection {
  /// How far its beginning has come: changes in steps at the port.
  enum class stage : std::uint8_t { travelling, waiting, queued, over };
  port* to = nullptr;
  stage now = stage::travelling;
  // Changes in steps at `to_server`.
  bool established = false;
  int error = 0;
  pipe to_server, to_client;
  ::sockaddr_storage client{}, server{};
};

struct port {
  std::uint16_t number = 0;
  bool bound = false;
  bool listening = false;
  std::size_t backlog = 0;
  unsigned partitions = 0;
  std::deque<connection*> queue;         ///< to be accepted
  std::deque<connection*> waiting;       ///< for a place in there, or for the end of a partition
  std::vector<connection*> connections;  ///< all there have been
  watches listeners;
};

struct socket {
  bool open = true;
  ::sockaddr_storage name{};
  port* at = nullptr;  ///< where it is bound
  bool listens = false;
  connection* link = nullptr;  ///< if it is an end of one
  bool server = false;         ///< of that
  bool slow = false;           ///< not connected at once

  [[nodiscard]] pipe& in() const noexcept { return server ? link->to_server : link->to_client; }
  [[nodiscard]] pipe& out() const noexcept { return server ? link->to_client : link->to_server; }
  [[nodiscard]] bool writable() const noexcept {
    return (server || link->established || link->error != 0) && out().writable();
  }
};

/// Results are those of the system calls, errors as negated numbers.
class network {
 public:
  /// Numbers of descriptors; no two in an execution are the same, so that a use after a close is seen.
  static constexpr int first = 1 << 20;

  void begin_execution() noexcept;
  /// What is still open, as text; empty if nothing is.
  [[nodiscard]] std::string open_sockets() const;
  [[nodiscard]] socket* find(int number) noexcept;

  int open(int family);
  int bind(socket& of, const ::sockaddr_storage& to);
  int listen(socket& of, int backlog);
  int connect(socket& of, const ::sockaddr_storage& to);
  int accept(socket& of);
  std::int64_t receive(socket& of, void* into, std::size_t size);
  std::int64_t send(socket& of, const void* from, std::size_t size);
  int shutdown(socket& of, int how);
  void close(socket& of);
  /// The error of an attempt to connect, once.
  int take_error(socket& of);

  /// From now on `by` is told; at once, if there is something already.
  void watch(socket& of, const detail::watch& by);
  /// And no event of it is left.
  void unwatch(socket& of, event_queue& by, void* as);
  /// What poll(2) would tell: only what the socket is asked for.
  [[nodiscard]] static event look(const socket& of, bool read, bool write);

  std::chrono::nanoseconds latency{0};
  void begin_partition(std::uint16_t number);
  void end_partition(std::uint16_t number);

 private:
  struct delivery {
    platform::time_point when;
    connection* link;
    pipe* data;  ///< null for the beginning of the connection
  };
  /// From here until the next one, whoever runs is alone.
  static void step(const void* at);
  port& port_of(std::uint16_t number);
  /// One for whoever does not say which, of those that nobody has bound.
  std::uint16_t free_port();
  static void tell(const watches& whom, event what, news& into);
  static void publish(const news& what);
  /// What has arrived at one pipe of a connection and matters to the other one.
  struct arrivals {
    bool answered = false;  ///< the attempt to connect
    int error = 0;          ///< of that
    bool reset = false;
    bool behind_the_end = false;  ///< of the stream
    bool unwanted = false;        ///< data for a reader that is gone
  };
  /// Whether an injected fault resets the connection, in a step at `by`: this end knows at once, the other one is told.
  bool reset(socket& of, pipe& by);
  /// Nothing can be read or written any more at this end; each in a step there.
  static void end_reading(pipe& which, int error, news& into);
  static void end_writing(pipe& which, int error, news& into);
  /// In a step at `to`, which it ends: sends that, and tells of `told` besides.
  void put(connection& link, pipe& to, pipe::packet::kind what, std::string bytes, news told);
  /// In a step at the pipe: what has come there by now.
  static arrivals arrive(pipe& at, news& into);
  /// The steps at the other pipe that this leads to.
  void follow(connection& link, pipe& at, const arrivals& what);
  /// In a step at its port: what becomes of a connection that has come there.
  static int settle(connection& link, news& into);
  void arrive(connection& link);
  void later(platform::time_point when, connection& link, pipe* data);
  [[noreturn]] void deliver();

  std::deque<socket> sockets_;
  std::deque<connection> connections_;
  std::map<std::uint16_t, port> ports_;
  std::uint16_t next_port_ = 0;
  // What a thread of the network's own will do; changes in steps at `scheduled_`.
  bool has_thread_ = false;
  platform::atomic<std::uint32_t> scheduled_{0};
  std::vector<delivery> deliveries_;
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
