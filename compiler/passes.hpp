// What the plugin is made of: each of these puts a pass where it belongs in the pipelines of the compiler and linker.
#pragma once

#include "llvm/Passes/PassBuilder.h"

namespace pirn::plugin {

/// Propagates the convention that preserves no register from functions that switch to those that call them.
void register_propagation(llvm::PassBuilder& builder);
/// Reports, or makes safe, addresses of thread-local variables that live across a switch.
void register_thread_locals(llvm::PassBuilder& builder);
/// Computes how much stack a function needs at most, and answers the program's questions about it.
void register_stack_bounds(llvm::PassBuilder& builder);

}  // namespace pirn::plugin
