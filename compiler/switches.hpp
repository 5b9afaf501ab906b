// Recognizes calls that switch to another context.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace pirn::plugin {

/// Returns whether the call is a switch: inline asm that clobbers every register that a function preserves for its
/// caller.
bool is_switch(const llvm::CallBase& call);

}  // namespace pirn::plugin
