// The options of the passes that propagate the convention, and their way from the compiler to a linker that optimizes.
#pragma once

#include <string>

#include "llvm/IR/Module.h"

namespace pirn::plugin {

struct propagation_settings {
  bool automatic = true;
  std::string list;    // the file that names functions, or empty
  std::string report;  // a folder or a file, or empty
};

/// Returns the settings of the command line.
propagation_settings settings_of_command();
/// Stores the settings in the module, for the last optimizer of it.
void remember(llvm::Module& module, const propagation_settings& settings);
/// Returns the settings of the command line; remembered ones replace those that it does not give.
propagation_settings settings_of(const llvm::Module& module);

}  // namespace pirn::plugin
