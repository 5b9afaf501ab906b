// Which uses of a value, and of what is computed from it, may happen after a suspension that it was computed before.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Instructions.h"
#include "suspension.hpp"

namespace pirn::plugin {

/// The instructions that use a value after it may have gone stale, each with a call between that may suspend.
using stale_uses = llvm::MapVector<llvm::Instruction*, llvm::CallBase*>;

/// Those of an instruction's result or of an argument. Values that depend on which way is gone (phis) and local
/// variables in memory are followed, memory elsewhere is not. A call that may suspend and gets the value uses it
/// afterwards if its body, where it is here, does so.
stale_uses find_stale_uses(llvm::Value& value, const suspension& suspends);

}  // namespace pirn::plugin
