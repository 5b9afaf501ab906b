// The errors of a client.
#pragma once

#include <cstdint>

namespace bench {

enum class client_error : std::uint8_t {
  closed = 1,  ///< the peer closed the connection before the end of the answer
  malformed,   ///< the answer violates the protocol
  too_long,    ///< its header is longer than the client allows
  unknown_id,  ///< it answers no pending request
};

}  // namespace bench
