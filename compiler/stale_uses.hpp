// Finds uses of a value, and of values computed from it, that may happen after a suspension although the value was
// computed before.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Instructions.h"
#include "suspension.hpp"

namespace pirn::plugin {

/// The instructions that use a value after it may have become stale, each with a call in between that may suspend.
using stale_uses = llvm::MapVector<llvm::Instruction*, llvm::CallBase*>;

/// Finds the stale uses of an instruction's result or of an argument. Values that depend on the path (phis) and local
/// variables in memory are followed, other memory is not. A call that may suspend and gets the value uses it afterwards
/// if its body, where it is here, does so.
stale_uses find_stale_uses(llvm::Value& value, const suspension& suspends);

}  // namespace pirn::plugin
