// The options of the passes that propagate the convention, and how they get from the compiler to a linker that
// optimizes.
#pragma once

#include <string>

#include "llvm/IR/Module.h"

namespace pirn::plugin {

struct propagation_settings {
  bool automatic = true;
  std::string list;    // the file that names functions, or empty
  std::string report;  // a folder or a file, or empty
};

/// What the command line says.
propagation_settings settings_of_command();
/// Leaves them in the module, for whoever optimizes it last.
void remember(llvm::Module& module, const propagation_settings& settings);
/// What the command line says, and where it says nothing what was remembered.
propagation_settings settings_of(const llvm::Module& module);

}  // namespace pirn::plugin
