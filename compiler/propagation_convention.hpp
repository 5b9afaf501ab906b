// The convention itself: the targets that have it, and how a function gets it.
#pragma once

#include <string>

#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// Returns the name of a function as in the source.
std::string readable(const llvm::GlobalValue& function);

/// Returns whether code for this module's target can be generated with a convention that preserves no register.
bool has_convention(const llvm::Module& module);

/// Gives the convention to a function and to every direct call of it.
void set_convention(llvm::Function& function);

}  // namespace pirn::plugin
