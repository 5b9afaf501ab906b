// How stack bounds are asked for: options after -mllvm, or where a linker loads the plugin after it has read its
// options, the environment variables of the same names in capitals, PIRN_STACK_...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pirn::plugin {

struct stack_options {
  std::vector<std::string> assumptions;    ///< files, and folders of summaries: -pirn-stack-assumptions
  std::optional<std::uint64_t> otherwise;  ///< bytes of functions that nothing is known of: -pirn-stack-default
  std::string report;                      ///< a file to append to: -pirn-stack-report
  std::string summaries;                   ///< a folder to write to: -pirn-stack-summaries

  static stack_options given();
};

}  // namespace pirn::plugin
