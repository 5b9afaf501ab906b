// How large the frames of a module's functions are, and what each calls, as the code generator has it.
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

/// What one function needs of the stack.
struct stack_frame {
  std::uint64_t bytes = 0;  ///< of its own, from its return address on
  std::vector<stack_call> calls;
  bool indirect = false;          ///< it also calls through pointers
  bool indirect_is_last = false;  ///< all of those replace it
  std::string why_none;           ///< why its frame has no known size; empty if it has one
  std::string file;               ///< where it is in the source, as FILE:LINE; empty without debug info
};

using stack_frames = std::map<std::string, stack_frame>;

/// Whether the linker or the loader may put other code in its place. As clang does where it inlines, this takes it that
/// a program has one definition of what is neither weak nor inline.
bool may_be_replaced(const llvm::GlobalValue& value);

/// Generates code for a copy of `module`, which is thrown away, and looks at the frames. `why_none` is set, and nothing
/// returned, where that cannot be done.
stack_frames frames_of(const llvm::Module& module, llvm::OptimizationLevel level, std::string& why_none);

}  // namespace pirn::plugin
