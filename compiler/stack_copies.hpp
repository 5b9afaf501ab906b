// Makes sure that the measured code is the code that runs.
#pragma once

#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"

namespace pirn::plugin {

/// Each object file has a separate copy of an inline function, and the linker keeps any one of them, which may have
/// been compiled differently. This gives such functions that are called on the way down from `roots` a private copy of
/// this file, and directs all direct calls on that way to it. A root that is such a function is replaced by its copy
/// everywhere in the module, and in `roots`. A function for which `needs_none` holds stays as it is, with all that it
/// calls. Returns whether anything has changed.
bool keep_to_own_copies(std::vector<llvm::Function*>& roots,
                        llvm::function_ref<bool(const llvm::Function&)> needs_none);

}  // namespace pirn::plugin
