// Numbers about a server. Included by server.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Numbers about a server at one moment.
struct server_statistics {
  std::size_t connections = 0;        ///< open now
  std::uint64_t accepted = 0;         ///< so far
  std::uint64_t accept_pauses = 0;    ///< how often a connection had no descriptor, stack or place
  std::uint64_t accept_failures = 0;  ///< connections that were lost before they were accepted, and shortages
  std::uint64_t made_room = 0;        ///< connections that were closed to make room for others
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
