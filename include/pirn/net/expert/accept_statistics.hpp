// Numbers about an acceptor. Included by acceptor.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Numbers about an acceptor at one moment.
struct accept_statistics {
  std::size_t connections = 0;  ///< open now
  std::uint64_t accepted = 0;   ///< so far
  std::uint64_t failed = 0;     ///< connections that were lost before they were accepted
  std::uint64_t shortages = 0;  ///< how often the acceptor had no descriptor, memory or stack
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
