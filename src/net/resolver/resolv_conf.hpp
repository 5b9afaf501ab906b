// The options of resolv.conf that c-ares does not read in all its versions.
#pragma once

#include <chrono>
#include <string>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// How long and how often servers are asked.
struct patience {
  std::chrono::milliseconds timeout{2000};  ///< of a try
  unsigned tries = 3;
  friend bool operator==(const patience&, const patience&) = default;
};

/// Reads `options timeout:N` and `options attempts:N` of the file, within the limits of the C library: 1 to 30 s, 1 to
/// 5 tries. The last ones count, and the defaults above for what is not there or no number. Throws std::bad_alloc.
[[nodiscard]] patience read_patience(const std::string& resolv_conf);

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
