// The further use of a module.
#pragma once

#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// Returns whether the module was compiled to bitcode that a linker is to optimize, by the flags that clang writes into
/// it.
inline bool is_for_linker(const llvm::Module& module) {
  return module.getModuleFlag("ThinLTO") != nullptr || module.getModuleFlag("EnableSplitLTOUnit") != nullptr;
}

}  // namespace pirn::plugin
