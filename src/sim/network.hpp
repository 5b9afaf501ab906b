// The network of an execution: sockets that behave as Linux's non-blocking ones do.
//
// Every operation consists of steps (`execution::touch`). Each step is at the one pipe, port or queue of events whose
// state it changes, so that the reduction knows which operations depend on each other. Watchers of a socket are
// notified after the step. The operations on pipes are in transfer.cpp, those of Unix streams in unix_streams.cpp,
// datagrams in datagrams.cpp, all others in network.cpp.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pirn/detail/platform.hpp"
#include "pirn/sim/explore.hpp"

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
struct socket;

/// Sockets that are on their way with bytes, to become descriptors of the receiver.
using passengers = std::vector<socket*>;

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
  /// Of a Unix stream: the parts of `arrived`, each sent by one call.
  struct record {
    std::size_t bytes;
    passengers with;
  };
  std::deque<record> records;
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
  bool local = false;  ///< of Unix sockets: what happens at one end is known at the other at once
};

/// A socket for datagrams. Changes in steps at it, except `peer`, which only its own socket changes.
struct mailbox {
  struct datagram {
    platform::time_point arrives;
    ::sockaddr_storage from = {};
    std::string bytes = {};
    passengers with = {};
    bool refused = false;  ///< no datagram, but the news that no process listens where one was sent
    bool late = false;     ///< later ones overtake it
  };
  std::deque<datagram> flying, arrived;
  bool open = true;
  bool local = false;  ///< a Unix socket: it loses nothing
  int error = 0;
  unsigned partitions = 0;
  mailbox* peer = nullptr;         ///< of a Unix socket
  ::sockaddr_storage peer_name{};  ///< of a UDP socket; without a family if there is no peer
  std::vector<mailbox*> waiting;   ///< senders that wait for room, and whose peer this is
  watches readers, writers;

  [[nodiscard]] bool readable() const noexcept { return !arrived.empty() || error != 0; }
  [[nodiscard]] bool full() const noexcept {
    return arrived.size() + flying.size() >= (local ? 11 : 256);  // as by default on Linux, for small datagrams
  }
};

struct port {
  std::uint16_t number = 0;
  std::string name;  ///< of Unix sockets, as text
  bool bound = false;
  ::sockaddr_storage host{};  ///< the address to which the socket is bound, unless it is a Unix socket
  bool listening = false;
  std::size_t backlog = 0;
  unsigned partitions = 0;
  mailbox* box = nullptr;                ///< the socket for datagrams that is bound here
  std::deque<connection*> queue;         ///< to be accepted
  std::deque<connection*> waiting;       ///< for a place in `queue`, or for the end of a partition
  std::vector<connection*> connections;  ///< all connections so far
  watches listeners;

  /// Whether the internet socket that is bound here takes what is sent to this name: it is bound to that address, or to
  /// all.
  [[nodiscard]] bool takes(const ::sockaddr_storage& to) const noexcept;
};

struct socket {
  unsigned references = 0;  ///< its numbers, and its journeys as a passenger
  bool passed = false;      ///< whether it was ever a passenger: then `references` changes in steps at the socket
  ::sockaddr_storage name{};
  port* at = nullptr;  ///< where it is bound
  bool listens = false;
  connection* link = nullptr;        ///< set if it is an end of a connection
  bool server = false;               ///< the end is that of the server
  bool slow = false;                 ///< not connected at once
  mailbox* box = nullptr;            ///< set if it is for datagrams
  bool reads = true, writes = true;  ///< an end of a pipe does one of them

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

  int open(int family, int type);
  int open_pair(int type, int* numbers);
  /// Opens a pipe: a Unix stream of one direction.
  int open_pipe(int* numbers);
  int bind(socket& of, const ::sockaddr_storage& to);
  int listen(socket& of, int backlog);
  int connect(socket& of, const ::sockaddr_storage& to);
  int accept(socket& of);
  /// A message of `sendmsg` or `recvmsg`, as the calls with fewer parameters use it too.
  struct message {
    std::string bytes;
    const ::sockaddr_storage* to = nullptr;
    std::vector<int> descriptors;
  };
  std::int64_t send(socket& of, const message& what);
  struct received {
    ::sockaddr_storage from{};
    std::vector<int> descriptors;  ///< new numbers
    bool descriptors_lost = false;
  };
  /// As `receive`, and takes up to `max_descriptors` descriptors. Returns the whole length of a datagram.
  std::int64_t receive(socket& of, void* into, std::size_t size, std::size_t max_descriptors, received& with);
  int shutdown(socket& of, int how);
  /// Gives up a number; the last one closes the socket.
  void close(int number);
  /// Returns the name of the other end; without a family if it has none.
  [[nodiscard]] static ::sockaddr_storage peer_name(const socket& of) noexcept;
  /// Returns and clears the error of the socket, such as that of an attempt to connect.
  int take_error(socket& of);

  /// Notifies `by` of events from now on, and at once if the socket is ready already.
  void watch(socket& of, const detail::watch& by);
  /// Ends a watch, and removes its events.
  void unwatch(socket& of, event_queue& by, void* as);
  /// Returns whether the socket is ready in each of the given directions. It sets `hup_or_error` only for an error of
  /// datagrams, which poll(2) does not report as readable.
  [[nodiscard]] static event look(const socket& of, bool read, bool write);

  std::chrono::nanoseconds latency{0};
  void begin_partition(std::uint16_t number);
  void end_partition(std::uint16_t number);

 private:
  struct delivery {
    platform::time_point when;
    connection* link;
    pipe* data;              ///< null for the beginning of the connection
    mailbox* box = nullptr;  ///< set for datagrams, which need no connection
  };
  std::int64_t receive_tcp(socket& of, void* into, std::size_t size);
  std::int64_t send_tcp(socket& of, const void* from, std::size_t size);
  void close(socket& of);
  static bool fault(bool sim::faults::* what);
  /// Begins a step; until the next one only the running thread acts.
  static void step(const void* at);
  port& port_of(std::uint16_t number);
  /// Returns the place that a socket of this kind may be bound to, or be found at.
  port& place_of(const ::sockaddr_storage& name, bool datagrams);
  /// Returns a port that is not bound, for callers that do not choose one.
  std::uint16_t free_port(bool datagrams);
  /// Binds a socket that its user has not bound to a free port, or a Unix socket to a free name.
  int bind_anywhere(socket& of, int family);
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
  void later(const delivery& what);
  [[noreturn]] void deliver();

  // Unix streams.
  int connect_local(socket& of, const ::sockaddr_storage& to);
  std::int64_t receive_local(socket& of, void* into, std::size_t size, std::size_t max_descriptors, received& with);
  std::int64_t send_local(socket& of, std::string_view bytes, passengers with);
  /// Ends one direction of a Unix stream, in a step at it. Returns the passengers that no reader will take.
  passengers end_local(pipe& which, bool reader_gone, int error);
  /// Closes one end; one that was never accepted resets the other.
  void close_local(connection& link, bool server, bool accepted);
  // Datagrams.
  int connect_datagrams(socket& of, const ::sockaddr_storage& to);
  std::int64_t send_datagram(socket& of, const message& what, passengers with);
  std::int64_t send_udp(socket& of, const ::sockaddr_storage& to, const std::string& bytes);
  std::int64_t receive_datagram(socket& of, void* into, std::size_t size, std::size_t max_descriptors, received& with);
  /// Sends a datagram of UDP in a step at `into`, which it ends.
  void put(mailbox& into, mailbox::datagram what);
  void close_datagrams(socket& of);
  /// Takes in what has arrived by now, in a step at the mailbox.
  static void arrive(mailbox& at, news& into);

  void partition_datagrams(std::uint16_t number, int change);

  int number_of(socket& made);
  /// Gives numbers to passengers, as many as there are places and this process may have.
  void land(const passengers& who, std::size_t max_descriptors, received& with);
  /// Closes the socket if this was its last reference.
  void release(socket& of);
  void release_all(const passengers& who);

  std::deque<socket> sockets_;
  std::vector<socket*> numbers_;  ///< null for those that are closed
  std::deque<connection> connections_;
  std::deque<mailbox> mailboxes_;
  std::map<std::uint16_t, port> ports_, udp_ports_;
  std::map<std::string, port> names_;  ///< of Unix sockets
  std::uint16_t next_port_ = 0;
  // The work of a thread that belongs to the network; changes in steps at `scheduled_`.
  bool has_thread_ = false;
  platform::atomic<std::uint32_t> scheduled_{0};
  std::vector<delivery> deliveries_;
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
