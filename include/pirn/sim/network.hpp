// The network of an exploration, which is in memory: pirn/net works on it unchanged, and its sockets last for one
// execution.
//
// Every address is this one machine. A port has one listener and one UDP socket; one that is bound to an address is not
// reached at the others. A connection holds 4 KiB in each direction before its writer has to wait; a UDP socket holds
// 256 datagrams, a Unix socket 11. Transfer takes no time and loses nothing, unless the program uses the classes below,
// or the exploration has the options `faults::short_transfers`, `faults::reset`, `faults::loss`, `faults::duplicate`
// and `faults::reorder`. Unix sockets know neither delays nor partitions; their paths are no files, and are free as
// soon as the socket is closed. They pass sockets only, no other files.
#pragma once

#include <chrono>
#include <cstdint>

#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

/// Delays the arrival of data and connections by `each_way` of virtual time while it exists. Create it before another
/// thread sends. The first one adds a thread to the execution, which does not count as a thread of the program.
class latency {
 public:
  /// Begins the delay.
  explicit latency(std::chrono::nanoseconds each_way) noexcept;
  ~latency();
  latency(const latency&) = delete;
  latency& operator=(const latency&) = delete;

 private:
  std::chrono::nanoseconds before_;
};

/// Separates the listener at a port from its clients while it exists. Neither data, in either direction, nor ends of
/// streams, resets or connections pass between them, whether the connection is old or new. All of that arrives when the
/// partition ends. Datagrams of UDP to and from the port are lost.
class partition {
 public:
  /// Begins the partition, at the connections whose server listens on `port`.
  explicit partition(std::uint16_t port) noexcept;
  ~partition();
  partition(const partition&) = delete;
  partition& operator=(const partition&) = delete;

 private:
  std::uint16_t port_;
};

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
