// Look-ups by the C library, which has other sources of names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Calls of getaddrinfo(3). Any thread or fiber.
class system_look_ups {
 public:
  /// How many threads of the blocking pool such calls may hold while no server answers.
  static constexpr std::size_t most_under_way = 64;

  explicit system_look_ups(std::size_t limit)
      : under_way_(std::make_shared<platform::atomic<std::size_t>>(0)), limit_(std::min(limit, most_under_way)) {}

  /// Asks for the addresses of a host. A fiber waits for a thread of the blocking pool, whose call lasts until the C
  /// library gives up, also after a stop or the deadline. Fails with std::errc::resource_unavailable_try_again if too
  /// many such calls are under way. A plain thread makes the call itself. Throws std::bad_alloc.
  [[nodiscard]] result<std::vector<ip_address>> look_up(const std::string& host, platform::time_point deadline);

 private:
  std::shared_ptr<platform::atomic<std::size_t>> under_way_;  ///< also of the calls that outlive this
  std::size_t limit_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
