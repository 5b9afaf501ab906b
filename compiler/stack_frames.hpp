// The sizes of the frames of a module's functions, and the calls of each, from the code generator.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llvm/IR/Module.h"
#include "llvm/Passes/OptimizationLevel.h"

namespace pirn::plugin {

/// A direct call in machine code.
struct stack_call {
  std::string callee;
  bool replaces_caller;  ///< a tail call: the caller's frame is gone
  auto operator<=>(const stack_call&) const = default;
};

/// The use of the stack by one function.
struct stack_frame {
  std::uint64_t bytes = 0;  ///< the function's own, from its return address on
  std::vector<stack_call> calls;
  bool indirect = false;          ///< it also calls through pointers
  bool indirect_is_last = false;  ///< all of these calls replace it
  std::string why_none;           ///< why its frame has no known size; empty if it has one
  std::string file;               ///< its place in the source, as FILE:LINE; empty without debug info
};

using stack_frames = std::map<std::string, stack_frame>;

/// Returns whether the linker or the loader may put other code in its place. As clang does for inlining, this assumes
/// that a function that is neither weak nor inline has one definition in a program.
bool may_be_replaced(const llvm::GlobalValue& value);

/// Generates code for a copy of `module`, which is thrown away, and reads the frames. If that is impossible, sets
/// `why_none` and returns nothing.
stack_frames frames_of(const llvm::Module& module, llvm::OptimizationLevel level, std::string& why_none);

}  // namespace pirn::plugin
