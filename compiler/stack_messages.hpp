// The messages of stack bounds: errors and remarks at the line of the call that asked for a bound.
#pragma once

#include <string>

#include "llvm/IR/Instructions.h"
#include "stack_graph.hpp"

namespace pirn::plugin {

/// Reports an error at the line of the user's code that `call` is part of.
void report_unbounded(const llvm::CallInst& call, const std::string& why);
/// Says how the bound came about.
void remark_bound(const llvm::CallInst& call, const llvm::Function& entry, const stack_bound& bound);

}  // namespace pirn::plugin
