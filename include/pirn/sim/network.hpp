// The network of an exploration, which is in memory: pirn/net works as it is, and its sockets last for one execution.
//
// Every address is this one machine; a port has one listener. A connection takes 4 KiB each way before its writer has
// to wait. No time passes on the way, and nothing gets lost, unless the program says so with what is below, or the
// options of the exploration do with `faults::short_transfers` and `faults::reset`.
#pragma once

#include <chrono>
#include <cstdint>

#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

/// While it lives, data and connections arrive that much virtual time after they were sent. Make it before there is
/// another thread that sends. The first one adds a thread to the execution, which counts as none of the program's.
class latency {
 public:
  explicit latency(std::chrono::nanoseconds each_way) noexcept;
  ~latency();
  latency(const latency&) = delete;
  latency& operator=(const latency&) = delete;

 private:
  std::chrono::nanoseconds before_;
};

/// While it lives, nothing passes between the listener at a port and its clients: neither data, in either direction,
/// nor ends of streams, resets or connections, present and new ones. All of that arrives when it ends.
class partition {
 public:
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
