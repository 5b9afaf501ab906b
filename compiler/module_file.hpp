// Names of files that are written beside each other, one for each module.
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace pirn::plugin {

/// Returns a name made from a module's path, which differs for each module. In a name that is too long for file
/// systems, a hash replaces the beginning.
std::string file_name_for(llvm::StringRef module, llvm::StringRef ending);

}  // namespace pirn::plugin
