// The parts of the plugin. Each function adds its passes to the pipelines of the compiler and linker, at the right
// places.
#pragma once

#include "llvm/Passes/PassBuilder.h"

namespace pirn::plugin {

/// Propagates the convention that preserves no register from functions that switch to their callers.
void register_propagation(llvm::PassBuilder& builder);
/// Reports, or makes safe, addresses of thread-local variables that live across a switch.
void register_thread_locals(llvm::PassBuilder& builder);
/// Computes the largest stack that a function needs, and answers the program's questions about it.
void register_stack_bounds(llvm::PassBuilder& builder);

}  // namespace pirn::plugin
