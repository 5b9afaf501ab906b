// The addresses of /etc/hosts.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/resolver/file_stamp.hpp"
#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The contents of one hosts file, read again when the file has changed. Not thread-safe.
class hosts_file {
 public:
  /// Reads nothing yet. An empty path is a file without lines.
  explicit hosts_file(std::string path) : path_(std::move(path)) {}
  /// Returns the addresses of a name in lower case, in the order of the file; empty if it has no line for it, or
  /// cannot be read. Throws std::bad_alloc.
  [[nodiscard]] std::vector<ip_address> find(const std::string& name);

 private:
  void read();

  const std::string path_;
  file_stamp read_at_;
  std::unordered_map<std::string, std::vector<ip_address>> names_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
