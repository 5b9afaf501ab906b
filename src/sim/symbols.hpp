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
  bool ours = false;     ///< pirn's
  bool inside = false;   ///< and of the exploration itself, or below what a user would know
  bool library = false;  ///< of the C++ library or the C library
};

/// Looked up once, all together: by llvm-symbolizer or addr2line where there is one, else by what the dynamic loader
/// knows.
class symbols {
 public:
  explicit symbols(std::vector<std::uintptr_t> addresses);
  /// The frames at a return address, inlined ones first.
  [[nodiscard]] const std::vector<frame>& at(std::uintptr_t address) const;

 private:
  std::map<std::uintptr_t, std::vector<frame>> known_;
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
