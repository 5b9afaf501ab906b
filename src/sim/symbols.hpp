// Names and lines of code addresses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

struct frame {
  std::string function;
  std::string line;      ///< file:line, empty where no symbolizer is installed or the code has no debug information
  bool ours = false;     ///< belongs to pirn
  bool inside = false;   ///< and to the exploration, or to internals that a user does not know
  bool library = false;  ///< of the C++ library or the C library
};

/// The frames of code addresses, looked up once and all together: by llvm-symbolizer or addr2line if one is installed,
/// else by the dynamic loader's knowledge.
class symbols {
 public:
  explicit symbols(std::vector<std::uintptr_t> addresses);
  /// Returns the frames at a return address, inlined ones first.
  [[nodiscard]] const std::vector<frame>& at(std::uintptr_t address) const;

 private:
  std::map<std::uintptr_t, std::vector<frame>> known_;
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
