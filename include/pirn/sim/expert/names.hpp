// Names in memory, for explorations of code that looks names up.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "pirn/net/resolver.hpp"
#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

namespace detail {
struct name_table;
}  // namespace detail

/// The names that `pirn::resolver` finds in an exploration while this object exists. Made by the program of the
/// exploration before others look names up, one at a time. Other names, and all names without it, do not exist.
///
/// The resolver is the one of other programs, except that it asks this table: callers share and cache questions, and
/// address literals, "localhost", the search domains and limits of `resolver::options` work. Its `servers` and files
/// have no effect, and `by_system` asks this table too. A question takes virtual time only if the table says so.
/// `faults::silence` makes the name server fail to answer a try.
class names {
 public:
  /// The knowledge of the name server about one name.
  struct host {
    std::vector<ip_address> addresses = {};        ///< of both families
    std::vector<resolver::service> services = {};  ///< its SRV records
    std::vector<std::string> texts = {};           ///< its TXT records
    std::error_code error = {};                    ///< the answer to all questions instead: io_error::name_not_found,
                                                   ///< no_such_record, name_server_failed or name_server_silent
    std::chrono::nanoseconds takes{0};             ///< how long after a question its answer arrives
    std::optional<std::chrono::nanoseconds> v6_takes = {};  ///< the same of IPv6 addresses, if it is another time
    std::chrono::seconds time_to_live{60};                  ///< how long the resolver may keep an answer
  };

  /// `by_name` has absolute names in lower case, without a dot at the end. Aborts outside of an exploration, and beside
  /// another such object.
  explicit names(std::map<std::string, host> by_name);
  ~names();
  names(const names&) = delete;
  names& operator=(const names&) = delete;

 private:
  std::unique_ptr<detail::name_table> table_;
};

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
