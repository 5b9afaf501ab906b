// Which calls switch to another context.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace pirn::plugin {

/// Whether it is inline asm that clobbers every register which a function preserves for its caller: a switch.
bool is_switch(const llvm::CallBase& call);

}  // namespace pirn::plugin
