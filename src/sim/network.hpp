// The network of an execution: sockets that behave as Linux's non-blocking ones do.
//
// Every operation consists of steps (`execution::touch`). Each step is at the one pipe, port or queue of events whose
// state it changes, so that the reduction knows which operations depend on each other. Watchers of a socket are
// notified after the step. The operations on pipes are in transfer.cpp, all others in network.cpp.
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

/// An event of a socket, for its watcher.
struct event {
  void* of = nullptr;  ///< the key under which the socket is watched
  bool readable = false;
  bool writable = false;
  bool hup_or_error = false;  ///< reading or writing has ended, or an error
};

/// The destination of events, as an epoll instance. A waiter waits for `told`; the events change in steps at `told`.
struct event_queue {
  platform::atomic<std::uint32_t> told{0};
  std::vector<event> events;
  std::vector<void*> watched;  ///< the keys of all watches; no event has another key
};

struct watch {
  std::shared_ptr<event_queue> queue;
  void* of;
};
using watches = std::vector<watch>;
/// The events to publish after a step.
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
  /// Bytes that the reader has taken and of which the writer does not know yet.
  struct taken {
    platform::time_point arrives;
    std::size_t bytes;
  };
  std::deque<packet> flying;
  std::deque<taken> returning;
  std::string arrived;
  std::size_t used = 0;  ///< bytes that were sent and, as far as the writer knows, not taken
  unsigned partitions = 0;
  bool ended = false;        ///< the writer has ended its stream
  bool at_end = false;       ///< and the end has arrived
  bool not_read = false;     ///< the reader has shut down its half
  bool reader_gone = false;  ///< it has closed, or shut down both halves: data that arrives is answered with a reset
  bool cut = false;          ///< the reader knows of a reset: nothing else is taken in
  bool broken = false;       ///< the writer knows of a reset, or has closed with unread data: nothing else is sent
  bool wants_room = false;
  int read_error = 0, write_error = 0;  ///< of the socket at that end; reported once, by one of its pipes
  watches readers, writers;

  [[nodiscard]] bool readable() const noexcept { return !arrived.empty() || at_end || not_read || cut; }
  [[nodiscard]] bool writable() const noexcept { return used < capacity || ended || broken; }
  static constexpr std::size_t capacity = 4096;
};

struct connection {
  /// The progress of its establishment; changes in steps at the port.
  enum class stage : std::uint8_t { travelling, waiting, queued, over };
  port* to = nullptr;
  stage now = stage::travelling;
  // Changes in steps at `to_server`; a connect without latency sets it in its step at the port.
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
  std::deque<connection*> waiting;       ///< for a place in `queue`, or for the end of a partition
  std::vector<connection*> connections;  ///< all connections so far
  watches listeners;
};

struct socket {
  bool open = true;
  ::sockaddr_storage name{};
  port* at = nullptr;  ///< where it is bound
  bool listens = false;
  connection* link = nullptr;  ///< set if it is an end of a connection
  bool server = false;         ///< the end is that of the server
  bool slow = false;           ///< not connected at once

  [[nodiscard]] pipe& in() const noexcept { return server ? link->to_server : link->to_client; }
  [[nodiscard]] pipe& out() const noexcept { return server ? link->to_client : link->to_server; }
  [[nodiscard]] bool writable() const noexcept {
    return (server || link->established || link->error != 0) && out().writable();
  }
};

/// The network of one execution. Functions return the results of the system calls, with errors as negated numbers.
class network {
 public:
  /// Numbers of descriptors; no two in an execution are the same, so that a use after a close is seen.
  static constexpr int first = 1 << 20;

  void begin_execution() noexcept;
  /// Returns the sockets that are still open, as text; empty if all are closed.
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
  /// Returns and clears the error of the socket, such as that of an attempt to connect.
  int take_error(socket& of);

  /// Notifies `by` of events from now on, and at once if the socket is ready already.
  void watch(socket& of, const detail::watch& by);
  /// Ends a watch, and removes its events.
  void unwatch(socket& of, event_queue& by, void* as);
  /// Returns whether the socket is ready in each of the given directions. It does not set `hup_or_error`.
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
  /// Begins a step; until the next one only the running thread acts.
  static void step(const void* at);
  port& port_of(std::uint16_t number);
  /// Returns a port that is not bound, for callers that do not choose one.
  std::uint16_t free_port();
  static void tell(const watches& whom, event what, news& into);
  static void publish(const news& what);
  /// Arrivals at one pipe of a connection that affect the other pipe.
  struct arrivals {
    bool answered = false;  ///< the attempt to connect was answered
    int error = 0;          ///< of the attempt
    bool reset = false;
    bool behind_the_end = false;  ///< the reset came behind the end of the stream
    bool unwanted = false;        ///< data for a reader that is gone
  };
  /// Resets the connection if a fault is injected. Called in a step at `by`, one of this end's pipes, whose operation
  /// then reports the error. This end's other pipe has the error at once, and a packet tells the other end.
  bool reset(socket& of, pipe& by);
  /// End all reading or writing at this end. Each is called in a step there.
  static void end_reading(pipe& which, int error, news& into);
  static void end_writing(pipe& which, int error, news& into);
  /// Sends a packet in a step at `to`, which it ends, and also publishes `told`.
  void put(connection& link, pipe& to, pipe::packet::kind what, std::string bytes, news told);
  /// Takes in, in a step at the pipe, the packets and the returning room that have arrived there by now.
  static arrivals arrive(pipe& at, news& into);
  /// Takes the steps at the other pipe that arrivals lead to.
  void follow(connection& link, pipe& at, const arrivals& what);
  /// Queues, delays or refuses a connection that has arrived at its port, in a step there.
  static int settle(connection& link, news& into);
  void arrive(connection& link);
  void later(platform::time_point when, connection& link, pipe* data);
  [[noreturn]] void deliver();

  std::deque<socket> sockets_;
  std::deque<connection> connections_;
  std::map<std::uint16_t, port> ports_;
  std::uint16_t next_port_ = 0;
  // The work of a thread that belongs to the network; changes in steps at `scheduled_`.
  bool has_thread_ = false;
  platform::atomic<std::uint32_t> scheduled_{0};
  std::vector<delivery> deliveries_;
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
