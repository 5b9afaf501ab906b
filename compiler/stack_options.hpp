// The options of stack bounds, given after -mllvm. A linker that loads the plugin after it has read its options uses
// environment variables of the same names in capitals, PIRN_STACK_...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pirn::plugin {

struct stack_options {
  std::vector<std::string> assumptions;    ///< files, and folders of summaries: -pirn-stack-assumptions
  std::optional<std::uint64_t> otherwise;  ///< bytes of unknown functions: -pirn-stack-default
  std::string report;                      ///< a file to append to: -pirn-stack-report
  std::string summaries;                   ///< a folder to write to: -pirn-stack-summaries

  static stack_options given();
};

}  // namespace pirn::plugin
