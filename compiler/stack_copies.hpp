// Makes sure that the code whose stack was measured is the code that runs.
#pragma once

#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"

namespace pirn::plugin {

/// Of an inline function each object file has its own copy, and the linker keeps any one of them, which may have been
/// compiled otherwise: gives those that are called on the way down from `roots` a copy of this file's own, and has all
/// direct calls on that way go there. A root that is such a function is replaced by its copy everywhere in the module,
/// and in `roots`. Whatever `needs_none` stays as it is, with all that it calls. True if anything has changed.
bool keep_to_own_copies(std::vector<llvm::Function*>& roots,
                        llvm::function_ref<bool(const llvm::Function&)> needs_none);

}  // namespace pirn::plugin
