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
/// Stores `automatic` and `report` in the module, for a linker that optimizes. The list is applied by the compiler
/// alone.
void remember(llvm::Module& module, const propagation_settings& settings);
/// Returns the settings of the command line, with those that the module remembers: `automatic` is false if either says
/// so, and a remembered `report` counts if the command line gives none.
propagation_settings settings_of(const llvm::Module& module);

}  // namespace pirn::plugin
