// Names of files that are written beside each other, one a module.
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace pirn::plugin {

/// A name made of a module's path, another one for each; what file systems would find too long has a hash in the place
/// of its beginning.
std::string file_name_for(llvm::StringRef module, llvm::StringRef ending);

}  // namespace pirn::plugin
