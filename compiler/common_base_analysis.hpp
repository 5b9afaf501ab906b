// Addresses that code generation computes from what it has read of the thread before a suspension, although each is
// asked for by itself.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "suspension.hpp"

namespace pirn::plugin {

/// `later` is an address of a thread-local variable for which code generation may take what it needs from `earlier`;
/// `between` may suspend.
struct common_base {
  llvm::CallBase* earlier;
  llvm::CallBase* later;
  llvm::CallBase* between;
};

llvm::SmallVector<common_base, 4> find_common_bases(llvm::Function& function, const suspension& suspends);

}  // namespace pirn::plugin
